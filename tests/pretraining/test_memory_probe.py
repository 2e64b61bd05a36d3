"""The memory that ``--plan`` predicts, compared with the memory of a run."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.data.prepare import prepare
from bertkit.encoders.bert import BertConfig, size
from bertkit.errors import BertkitError
from bertkit.pretraining import memory_probe
from bertkit.pretraining.memory_probe import estimate_peak
from bertkit.pretraining.record import PretrainRun
from bertkit.text import wordpiece

WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""
"""An intermediate process: on Linux the peak of a child includes the size of its parent."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of made-up words with a vocabulary of 4,999 subwords."""
    home, generator = tmp_path_factory.mktemp("home"), random.Random(7)
    words = ["".join(generator.choices(string.ascii_lowercase, k=generator.randint(3, 9))) for _ in range(2999)]
    texts = [" ".join(" ".join(generator.choices(words, k=13)) + "." for _ in range(37)) for _ in range(199)]
    (home / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = wordpiece.train(texts, vocab_size=4999)
    prepare([home / "texts.jsonl"], tokenizer=tokenizer, output=home / "data", heldout=0.3)
    return home / "data"


def make_run(data: Path, encoder: BertConfig, rows: int, seq_length: int) -> PretrainRun:
    return PretrainRun(
        data=data, output=Path("run"), encoder=encoder, batch_size=rows, seq_length=seq_length, precision="float32"
    )


def measure_peak(run: PretrainRun, name: str, output: Path) -> int:
    """The peak memory of the command in bytes, from its start to the finished model."""
    words = ["pretrain", run.data, "--size", name, "--steps", 12, "--batch-size", run.batch_size, "-o", output]
    words += ["--seq-length", run.seq_length, "--set", f"precision={run.precision}"]
    words.append(f"gradient_checkpointing={run.gradient_checkpointing}".lower())
    command = [sys.executable, "-c", WATCH, sys.executable, "-m", "bertkit", *map(str, words)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(("name", "rows", "seq_length"), [("tiny", 23, 61), ("mini", 41, 128)])
def test_the_estimate_is_close_to_the_measured_peak(
    data: Path, tmp_path: Path, name: str, rows: int, seq_length: int, checkpointing: bool
) -> None:
    """For a micro-batch that is measured in full, and for one that is extrapolated."""
    run = make_run(data, size(name, vocab_size=4999), rows, seq_length)
    run = replace(run, gradient_checkpointing=checkpointing)
    assert estimate_peak(run) == pytest.approx(measure_peak(run, name, tmp_path / "run"), rel=0.15)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[PretrainRun]:
    """The measured runs; their peak is faked as 100 bytes plus one per token of a micro-batch."""
    runs: list[PretrainRun] = []

    def measure(run: PretrainRun, share: float) -> int:
        runs.append(memory_probe._with_fewer_rows(run, share))
        rows = min(runs[-1].batch_size, runs[-1].micro_batch_size or runs[-1].batch_size)
        return 100 + rows * run.seq_length

    monkeypatch.setattr(memory_probe, "_measure", measure)
    return runs


@pytest.mark.parametrize(
    ("rows", "micro", "expected"),
    [
        (37, None, [(37, None)]),
        (99, 37, [(74, 37)]),  # two of several micro-batches
        (400, None, [(81, None), (40, None)]),
        (999, 99, [(98, 49), (48, 24)]),
    ],
)
def test_large_micro_batches_are_extrapolated(
    data: Path, measured: list[PretrainRun], rows: int, micro: int | None, expected: list[tuple[int, int | None]]
) -> None:
    run = replace(make_run(data, size("1/12/2", vocab_size=4999), rows, 101), micro_batch_size=micro)
    assert estimate_peak(run) == 100 + min(rows, micro or rows) * 101
    assert sorted(((each.batch_size, each.micro_batch_size) for each in measured), reverse=True) == expected


def test_an_objective_that_compares_rows_gets_two_at_least(data: Path, measured: list[PretrainRun]) -> None:
    encoder = size("1/12/2", vocab_size=4999, max_positions=5000)
    estimate_peak(make_run(data, encoder, 7, 4999))
    assert sorted(each.batch_size for each in measured) == [2, 4]
    measured.clear()
    estimate_peak(make_run(data, encoder, 4, 4999))
    assert [each.batch_size for each in measured] == [4]


def test_a_micro_batch_of_one_row_is_measured_as_it_is(data: Path, measured: list[PretrainRun]) -> None:
    encoder = size("1/12/2", vocab_size=4999, max_positions=5000)
    estimate_peak(replace(make_run(data, encoder, 7, 4999), micro_batch_size=1))
    assert [(each.batch_size, each.micro_batch_size) for each in measured] == [(2, 1)]


def test_invalid_settings_raise_the_error_of_the_run(data: Path) -> None:
    run = make_run(data, size("1/12/2", vocab_size=4999, max_positions=7), 3, 13)
    with pytest.raises(BertkitError, match=r"encoder\.max_positions is 7") as caught:
        estimate_peak(run)
    assert caught.value.exit_code == 2


def test_a_killed_process_is_reported_as_lack_of_memory(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_probe, "_run_steps", sys.exit)
    with pytest.raises(BertkitError, match="the memory does not suffice"):
        estimate_peak(make_run(data, size("1/12/2", vocab_size=4999), 3, 13))
