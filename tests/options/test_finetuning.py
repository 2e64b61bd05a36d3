"""What the options of finetune and tune say about defaults and choices is true of the run record."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from bertkit.finetuning.record import FinetuneRun
from bertkit.options.description import list_options
from bertkit.options.finetuning import FinetuneOptions, TaskTrainingOptions, TaskValue, TuneOptions
from bertkit.tasks.glue import sst2

HELP = {option.name: option.help for option in list_options(FinetuneOptions)}


@pytest.fixture
def run() -> FinetuneRun:
    return FinetuneRun(task=sst2, model=Path("m"), output=Path("o"))


def documented_default(name: str) -> str:
    found = re.search(r"\[default: ([^\]]*)\]", HELP[name])
    assert found
    return found[1].partition(";")[0]


@pytest.mark.parametrize("name", ["epochs", "batch_size"])
def test_documented_defaults_are_those_of_the_record(run: FinetuneRun, name: str) -> None:
    assert documented_default(name) == str(getattr(run, name))


def test_the_documented_learning_rate_is_that_of_the_record(run: FinetuneRun) -> None:
    assert float(documented_default("lr")) == run.optimizer.lr


@pytest.mark.parametrize("name", ["seeds", "first_seed", "from_scratch", "reinit_layers", "layer_decay", "limit"])
def test_defaults_are_those_of_the_record(run: FinetuneRun, name: str) -> None:
    assert getattr(FinetuneOptions("t", model="m", output="o"), name) == getattr(run, name)


def test_tune_takes_everything_that_finetune_takes_but_a_second_task() -> None:
    shared = {field.name for field in dataclasses.fields(TaskTrainingOptions)}
    assert {field.name for field in dataclasses.fields(FinetuneOptions)} - shared == {"then"}
    assert {field.name for field in dataclasses.fields(TuneOptions)} - shared == {"grid", "trials", "sampler", "engine"}


def test_a_task_may_be_a_value() -> None:
    assert isinstance(sst2, TaskValue)
    assert not isinstance(Path("glue:sst2"), TaskValue)
