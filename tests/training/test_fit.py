"""The training loop: gradients weighted by labels, exact resumes, and steps that are skipped."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.training.tiny_training import (
    ScaledLoss,
    Sentences,
    are_equal,
    copy_groups,
    make_plan,
    make_state,
    run,
    turn_dropout_off,
    weights_and_moments,
)

from bertkit.batch import Batch, LossTerm
from bertkit.errors import BertkitError
from bertkit.machine.precision import Precision
from bertkit.training.fit import fit, mean_loss
from bertkit.training.optimizer import OptimizerConfig


def test_the_loss_falls() -> None:
    steps = run(make_state(OptimizerConfig(lr=1e-2)), make_plan(total_steps=90))
    assert [step.step for step in steps] == list(range(1, 91))
    assert sum(steps[-1].losses.values()) < sum(steps[0].losses.values()) - 0.5
    assert steps[0].tokens > 7 * 5
    assert steps[-1].epoch == 89 // 6


@pytest.mark.parametrize(("stop", "kind"), [(1, "adam"), (5, "adam"), (6, "adam"), (11, "adam"), (5, "lamb")])
def test_a_resume_is_bit_exact_with_dropout_on(stop: int, kind: Literal["adam", "lamb"]) -> None:
    config = OptimizerConfig(kind=kind, lr=1e-3)
    uninterrupted = make_state(config)
    losses = [step.losses for step in run(uninterrupted, make_plan())]
    stopped = make_state(config)
    run(stopped, make_plan(), until=stop)
    groups = copy_groups(stopped)
    torch.manual_seed(99)
    resumed = make_state(config)
    torch.rand(7)
    resumed.restore(groups, stop)
    assert [step.losses for step in run(resumed, make_plan())] == losses[stop:]
    assert are_equal(uninterrupted, resumed)


def test_a_model_on_the_cpu_leaves_the_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking a GPU for its random state takes memory of it, which other programs may need: ``--device cpu``."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in ("get_rng_state", "set_rng_state"):
        monkeypatch.setattr(torch.cuda, name, lambda *given: pytest.fail("the GPU is used"))
    state = make_state()
    assert sorted(state.groups()["random"]) == ["cpu"]
    groups = copy_groups(state)
    groups["random"]["cuda"] = torch.zeros(16, dtype=torch.uint8)  # the run was begun on a GPU
    state.restore(groups, 0)


@pytest.mark.parametrize("workers", [0, 3, 20])
def test_the_number_of_loader_workers_changes_nothing(workers: int) -> None:
    expected = make_state()
    steps = run(expected, make_plan())
    state = make_state()
    plan = make_plan(loader_workers=workers)
    found = run(state, plan, until=5) + run(state, plan)
    assert [(step.epoch, step.losses, step.tokens) for step in found] == [
        (step.epoch, step.losses, step.tokens) for step in steps
    ]
    assert are_equal(state, expected)


def test_micro_batches_weight_every_label_equally() -> None:
    """With dropout off, any division of the batch gives the same step."""
    results = []
    for rows in (None, 1, 3):
        state = make_state()
        turn_dropout_off(state.model)
        steps = run(state, make_plan(micro_batch_size=rows, total_steps=4))
        results.append((state, [step.losses for step in steps]))
    for state, losses in results[1:]:
        for name, value in results[0][0].model.state_dict().items():
            torch.testing.assert_close(state.model.state_dict()[name], value, atol=2e-5, rtol=1e-4)
        assert losses[0] == pytest.approx(results[0][1][0], abs=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradient_checkpointing_trains_the_same_bits(precision: Precision) -> None:
    stored, recomputed = make_state(), make_state()
    recomputed.model.encoder.gradient_checkpointing = True
    losses = []
    for state in (stored, recomputed):
        torch.manual_seed(7)
        losses.append([step.losses for step in run(state, make_plan(micro_batch_size=3, precision=precision))])
    assert losses[0] == losses[1]
    assert are_equal(stored, recomputed)


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_changes_no_weight(factor: float) -> None:
    state = make_state()
    run(state, make_plan(), until=2)
    before = {name: value.clone() for name, value in weights_and_moments(state).items()}
    state.model.loss = ScaledLoss(state.model, iter([factor, 1.0]))  # type: ignore[assignment, method-assign]
    steps = fit(state, Sentences(), make_plan())
    assert next(steps).skipped
    assert all(torch.equal(value, before[name]) for name, value in weights_and_moments(state).items())
    assert not next(steps).skipped


def test_training_stops_after_ten_skipped_steps_in_a_row() -> None:
    state = make_state()
    state.model.loss = ScaledLoss(state.model, iter([float("nan")] * 10))  # type: ignore[assignment, method-assign]
    with pytest.raises(BertkitError, match="10 steps in a row"):
        run(state, make_plan())


@pytest.mark.parametrize(
    ("losses", "diverges"), [([float("nan")] * 3, True), ([1.0, float("nan"), float("nan")], False)]
)
def test_a_training_whose_every_step_was_skipped_is_an_error(losses: list[float], diverges: bool) -> None:
    state = make_state()
    state.model.loss = ScaledLoss(state.model, iter(losses))  # type: ignore[assignment, method-assign]
    with pytest.raises(BertkitError, match="3 steps in a row, up to step 3") if diverges else nullcontext():
        list(fit(state, Sentences(), make_plan(total_steps=3)))


def test_the_loss_of_a_step_has_the_weights_of_its_terms() -> None:
    state = make_state()
    state.model.heads["nsp"].weight = 0.25
    step = next(fit(state, Sentences(), make_plan(micro_batch_size=3)))
    assert step.loss == pytest.approx(step.losses["mlm"] + 0.25 * step.losses["nsp"])


@pytest.mark.parametrize("label", ["tokens", "flops"])
def test_a_label_may_have_the_name_of_a_count(label: str) -> None:
    """Losses, token counts and label counts are independent of the names of labels."""

    class Relabelled(Sentences):
        def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
            batch = super().batch(epoch, indices)
            return replace(batch, labels={"mlm": batch.labels["mlm"], label: batch.labels["nsp"]})

    expected = next(fit(make_state(), Sentences(), make_plan(), count_flops=lambda batch: 1000))
    renamed = make_state()
    renamed.model.objectives["nsp"].label = label  # type: ignore[assignment]
    found = next(fit(renamed, Relabelled(), make_plan(), count_flops=lambda batch: 1000))
    assert (found.tokens, found.flops) == (expected.tokens, expected.flops)
    assert found.losses == {"mlm": expected.losses["mlm"], label: expected.losses["nsp"]}


def test_a_loss_term_without_labels_is_named() -> None:
    terms = {"order": LossTerm(torch.tensor(3.0), 7)}
    with pytest.raises(BertkitError, match='a loss term is named "order", and labels are counted for mlm, nsp:'):
        mean_loss(terms, {"mlm": 13, "nsp": 7})


def test_the_reported_norm_is_the_one_before_clipping() -> None:
    state = make_state(OptimizerConfig(lr=1e-3, clip_norm=1e-3))
    step = next(fit(state, Sentences(), make_plan()))
    assert step.grad_norm > 1e-3
