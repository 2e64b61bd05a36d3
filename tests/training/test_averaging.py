"""Averages of the weights against their formulas, and their state."""

from __future__ import annotations

import pytest
import torch
from tests.training.tiny_training import are_equal, copy_groups, make_plan, make_state, run
from torch import Tensor, nn

from bertkit.errors import BertkitError
from bertkit.training.averaging import AveragingConfig, WeightAverage
from bertkit.training.fit import TrainingState


def averages_after(config: AveragingConfig, values: list[float]) -> Tensor:
    """The average of a weight that has these values after the steps of a run."""
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, config)
    for number, value in enumerate(values, start=1):
        nn.init.constant_(model.weight, value)
        average.update(number / len(values))
    with average.swapped_in():
        found = model.weight.detach().clone()
    assert float(model.weight.detach()) == values[-1]
    return found


def test_the_moving_average_equals_its_formula() -> None:
    values = [3.0, 5.0, 4.0, 9.0, 2.0, 7.0]
    expected = values[0]
    for count, value in enumerate(values[1:], start=1):
        kept = min(0.3, (1 + count) / (10 + count))
        expected = kept * expected + (1 - kept) * value
    assert float(averages_after(AveragingConfig(kind="ema", decay=0.3), values)) == pytest.approx(expected)


def test_the_tail_is_the_mean_of_the_last_steps() -> None:
    values = [3.0, 5.0, 4.0, 9.0, 2.0, 7.0, 1.0, 8.0, 6.0, 10.0]
    expected = sum(values[-3:]) / 3
    assert float(averages_after(AveragingConfig(kind="tail", share=0.3), values)) == pytest.approx(expected)


def test_before_the_first_average_the_weights_are_the_models_own() -> None:
    model = nn.Linear(3, 3)
    average = WeightAverage(model, AveragingConfig(kind="tail", share=0.1))
    nn.init.ones_(model.weight)
    average.update(0.5)
    with average.swapped_in():
        assert bool((model.weight == 1).all())


def with_average(kind: str) -> TrainingState:
    state = make_state()
    state.average = WeightAverage(state.model, AveragingConfig(kind=kind, share=0.5))  # type: ignore[arg-type]
    return state


@pytest.mark.parametrize("kind", ["ema", "tail"])
@pytest.mark.parametrize("stop", [5, 9])
def test_a_resume_is_bit_exact(kind: str, stop: int) -> None:
    expected = with_average(kind)
    run(expected, make_plan())
    stopped = with_average(kind)
    run(stopped, make_plan(), until=stop)
    groups = copy_groups(stopped)
    resumed = with_average(kind)
    resumed.restore(groups, stop)
    run(resumed, make_plan())
    assert are_equal(expected, resumed)
    found = resumed.groups()["average"]
    assert all(torch.equal(value, found[name]) for name, value in expected.groups()["average"].items())
    assert int(found["count"]) == (12 if kind == "ema" else 6)


def test_averaging_changes_no_step() -> None:
    losses = [step.losses for step in run(make_state(), make_plan())]
    averaged = with_average("ema")
    assert [step.losses for step in run(averaged, make_plan())] == losses
    own = [weight.clone() for weight in averaged.model.parameters()]
    with averaged.averaged():
        assert not all(map(torch.equal, averaged.model.parameters(), own))
    assert all(map(torch.equal, averaged.model.parameters(), own))


@pytest.mark.parametrize("setting", [{"decay": 1.0}, {"decay": -0.1}, {"share": 0.0}, {"share": 1.5}])
def test_settings_out_of_range_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(BertkitError, match=f"{next(iter(setting))} is"):
        AveragingConfig(**setting)  # type: ignore[arg-type]


@pytest.mark.parametrize(("share", "steps", "averaged"), [(0.07, 100, 7), (0.07, 1000, 70), (0.1, 10, 1), (1.0, 5, 5)])
def test_the_tail_has_its_share_of_the_steps(share: float, steps: int, averaged: int) -> None:
    average = WeightAverage(nn.Linear(1, 1), AveragingConfig(kind="tail", share=share))
    for number in range(1, steps + 1):
        average.update(number / steps)
    assert int(average.tensors()["count"]) == averaged
