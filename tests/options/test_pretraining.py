"""What the options of pretrain say about defaults and choices is true of the run record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bertkit.encoder_types.architectures import configure_architecture, find_encoder
from bertkit.lookup import list_modules
from bertkit.options.description import list_options
from bertkit.options.pretraining import PretrainOptions
from bertkit.pretraining.defaults import default_pretraining_task
from bertkit.pretraining.record import PretrainRun

HELP = {option.name: option.help for option in list_options(PretrainOptions)}


def documented_default(name: str) -> str:
    found = re.search(r"\[default: ([^\],]*)", HELP[name])
    assert found
    return found[1]


@pytest.fixture
def run() -> PretrainRun:
    encoder = configure_architecture("bert", "mini", vocab_size=99)
    task = default_pretraining_task(encoder, vocab_size=99)
    return PretrainRun(data=Path("d"), output=Path("o"), encoder=encoder, task=task)


@pytest.mark.parametrize("name", ["seq_length", "batch_size", "seed"])
def test_documented_defaults_are_those_of_the_record(run: PretrainRun, name: str) -> None:
    assert documented_default(name) == str(getattr(run, name))


def test_the_documented_learning_rate_is_that_of_the_record(run: PretrainRun) -> None:
    assert float(documented_default("lr")) == run.optimizer.lr


def test_architectures_and_sizes_in_the_help_exist() -> None:
    pretrainable = [name for name in list_modules("encoders") if find_encoder(name).pretraining is not None]
    assert "modernbert" in pretrainable
    for name in pretrainable:
        assert name in HELP["architecture"], "a new encoder is named in the help"
        configure_architecture(name, "1/12/2", vocab_size=99)
    for size in re.findall(r"[a-z]+(?=,)", HELP["size"]):
        configure_architecture("bert", size, vocab_size=99)
