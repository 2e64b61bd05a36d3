"""Verbs as they are typed in a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.options.command import spell_command, spell_option, spell_usage
from bertkit.options.embedding import EmbedOptions
from bertkit.options.finetuning import FinetuneOptions, TuneOptions
from bertkit.options.job import Options
from bertkit.options.pretraining import PretrainOptions
from bertkit.options.reproduction import ReproduceOptions
from bertkit.options.text import PrepareOptions


@pytest.mark.parametrize(
    ("verb", "options", "command"),
    [
        ("reproduce", ReproduceOptions("table5", output="out"), "bertkit reproduce table5 -o out"),
        ("reproduce", ReproduceOptions("all", plan=True, progress="quiet"), "bertkit reproduce all --plan"),
        (
            "finetune",
            FinetuneOptions(Path("my reviews.csv"), model="m", output="o", lr=5e-5, set=["a=1", "b=2"]),
            "bertkit finetune 'my reviews.csv' --model m -o o --lr 5e-05 --set a=1 b=2",
        ),
        (
            "tune",
            TuneOptions("glue:rte", model="m", output="o", grid=["lr=5e-05,3e-05", "epochs=2"]),
            "bertkit tune glue:rte --model m -o o --grid lr=5e-05,3e-05 epochs=2",
        ),
        ("pretrain", PretrainOptions("data", from_="m", output="o"), "bertkit pretrain data -o o --from m"),
        (
            "reproduce",
            ReproduceOptions("table5", output="o", set={"steps": 2000, "precision": "bfloat16", "sizes": ["a", "b"]}),
            'bertkit reproduce table5 -o o --set steps=2000 precision=bfloat16 \'sizes=["a", "b"]\'',
        ),
        (
            "prepare",
            PrepareOptions(["a.txt", "b.txt"], tokenizer="tok", output="data", on_bad_bytes="replace"),
            "bertkit prepare a.txt b.txt --tokenizer tok -o data --on-bad-bytes replace",
        ),
        (
            "embed",
            EmbedOptions("m", "a.txt", output="v.npy", normalize=False),
            "bertkit embed m a.txt -o v.npy --normalize=false",
        ),
    ],
)
def test_a_command_says_what_the_options_say(verb: str, options: Options, command: str) -> None:
    assert spell_command(verb, options) == command


@pytest.mark.parametrize(
    ("verb", "usage"),
    [
        ("fill", "bertkit fill MODEL TEXT [OPTIONS]"),
        ("compare", "bertkit compare FIRST SECOND [DATA] [OPTIONS]"),
        ("tokenizer train", "bertkit tokenizer train FILES... -o OUTPUT [OPTIONS]"),
        ("finetune", "bertkit finetune TASK --model MODEL -o OUTPUT [OPTIONS]"),
    ],
)
def test_usage_shows_what_is_required(verb: str, usage: str) -> None:
    assert spell_usage(verb) == usage


def test_options_are_spelled_with_dashes() -> None:
    assert [spell_option(name) for name in ("output", "lr", "first_seed")] == ["-o", "--lr", "--first-seed"]
