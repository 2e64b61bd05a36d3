from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.config.jobs import JOB, Job, Network, Optimizer

from bertkit.config.settings import Setting, apply, origins, parse_settings, refuse_without_effect, settings_of
from bertkit.errors import BertkitError


def test_settings_are_converted_and_the_last_one_wins() -> None:
    typed = parse_settings(
        ["optimizer.lr=1e-3", "optimizer.lr = 1e-2", "keep=true", "layers=[3,4]", "until=x=y", "optimizer.clip=null"]
    )
    job = apply(JOB, typed)
    assert job == Job(data=Path("corpus"), optimizer=Optimizer(lr=0.01), keep=True, layers=(3, 4), until=Path("x=y"))


def test_numbers_of_numpy_are_numbers() -> None:
    """The searches of scikit-learn draw settings as such."""
    drawn = {"optimizer.warmup": np.int64(7), "optimizer.lr": np.float32(0.5)}
    optimizer = apply(JOB, [Setting(path, value, "here") for path, value in drawn.items()]).optimizer
    assert (optimizer.warmup, optimizer.lr) == (7, 0.5)


def test_fields_of_one_record_change_together() -> None:
    job = apply(JOB, parse_settings(["network.width=13", "network.heads=13"]))
    assert job.network == Network(width=13, heads=13)


def test_settings_of_a_dictionary_are_those_of_the_same_words() -> None:
    words = apply(JOB, parse_settings(["network.width=13", "network.heads=13"]))
    assert apply(JOB, parse_settings({"network.width": 13, "network.heads": 13})) == words


def test_every_value_has_an_origin() -> None:
    settings = [
        *settings_of(Network(width=6), "--size small", "network"),
        Setting("keep", True, "--keep"),
    ]
    found = origins(apply(JOB, settings), settings)
    assert found["network.width"] == found["network.heads"] == "--size small"
    assert found["keep"] == "--keep"
    assert found["optimizer.lr"] == "default"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("optimizer.lr", "--set optimizer.lr: expected path.to.field=value."),
        ("optimizer.warmup=many", "--set: optimizer.warmup is many; expected a whole number."),
        ("optimizer.clip=none of it", "--set: optimizer.clip is none of it; expected a number or null."),
        ("layers=[1", "--set: layers is [1; expected "),
        ("names=[mlm]", "--set: names is [mlm]; expected a list in brackets, each item text in double quotes."),
        ("layers=" + "[" * 100_000, "--set: layers is [[["),
    ],
)
def test_errors_on_the_command_line(typed: str, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        apply(JOB, parse_settings([typed]))
    assert str(caught.value).startswith(message)


def test_a_setting_that_others_switch_off_is_refused() -> None:
    settings = [Setting(path, value, "--set") for path, value in (("optimizer.warmup", 3), ("keep", True))]
    job = apply(Job(data=Path("d")), settings)
    with pytest.raises(BertkitError, match=r"^--set: optimizer\.warmup has no effect without optimizer\.clip"):
        refuse_without_effect(job, settings)
    refuse_without_effect(apply(job, [Setting("optimizer.clip", 1.0, "--set")]), settings)


@dataclass(frozen=True, kw_only=True)
class Refusing:
    steps: int = 1
    model: str = "a"

    def __post_init__(self) -> None:
        if self.steps > 1:
            raise BertkitError("task.steps is 2, and runs/model has 1 (--model): leave out task.steps.")


@pytest.mark.parametrize("order", [("steps", "model"), ("model", "steps")])
def test_an_error_is_the_fault_of_the_setting_whose_path_it_has(order: tuple[str, str]) -> None:
    values: dict[str, object] = {"steps": 2, "model": "b"}
    with pytest.raises(BertkitError, match=r"^the steps: task\.steps is 2"):
        apply(Refusing(), [Setting(name, values[name], f"the {name}") for name in order])
