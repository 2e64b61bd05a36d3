"""A resume after something has changed: settings, text, damaged files, too little memory or disk space."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.interruptible_run import TinyRun, outcome

from bertkit.checkpoint import training_state as store
from bertkit.cli import app
from bertkit.data.prepare import prepare
from bertkit.data.shards import Corpus
from bertkit.runs import read_metrics
from bertkit.training import fit
from bertkit.training.base_optimizer import Optimizer
from bertkit.training.optimizer import OptimizerConfig, set_lr

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.usefixtures("without_shape_checks", "quick"),
]

Outcome = dict[str, Any]


def at_call(module: object, name: str, call: int, do: Callable[[], object]) -> Callable[[], None]:
    """Do something at one call of a function, counted from 1, and at every later one."""

    def patch() -> None:
        original, calls = getattr(module, name), 0

        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= call:
                do()
            return original(*arguments, **named)

        setattr(module, name, wrapped)

    return patch


def fail(error: BaseException) -> Callable[[], None]:
    def strike() -> None:
        raise error

    return strike


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "run.lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def stopped(bench: TinyRun, tmp_path: Path) -> Path:
    """A run that was killed after its second checkpoint."""
    kept = bench.home / f"stopped-{bench.steps}"
    if not kept.exists():
        kill = at_call(fit, "accumulate_gradients", 11, lambda: os.kill(os.getpid(), signal.SIGKILL))
        assert bench.run(bench.command(kept), kill)[0] == -signal.SIGKILL
    shutil.copytree(kept, tmp_path / "run")
    return tmp_path / "run"


CHANGES = {
    "--seed 6": ["seed 5, not 6"],
    "--batch-size 8": ["batch_size 7, not 8"],
    "--lr 0.01": ["optimizer.lr 0.0001, not 0.01"],
    "--steps 61 --seq-length 17": ["steps 20, not 61", "seq_length 13, not 17"],
    "--size 2/24/3": ["encoder.num_layers 1, not 2", "encoder.hidden_size 12, not 24", "encoder.num_heads 2, not 3"],
    "--profile fast": ["task.masking.rate 0.15, not 0.3"],
    "--set encoder.vocab_size=98": ["encoder.vocab_size"],
    "--set micro_batch_size=3 save_every=2": ["micro_batch_size None, not 3"],
}


@pytest.mark.parametrize("words", CHANGES)
def test_other_settings_are_refused_by_name(bench: TinyRun, stopped: Path, words: str) -> None:
    before = content(stopped)
    code, shown = bench.run(["pretrain", "--resume", str(stopped), *words.split()])
    assert code == 2
    last = shown.splitlines()[-1]
    assert last.startswith(f"error: {stopped} was begun with ")
    for each in CHANGES[words]:
        assert each in last
    assert "save_every 4" not in last
    assert content(stopped) == before


def test_settings_edited_in_the_record_are_refused(bench: TinyRun, stopped: Path) -> None:
    """A checkpoint records the settings that it was trained with."""
    record = json.loads((stopped / "run.json").read_text())
    record["run"]["seed"] = 6
    (stopped / "run.json").write_text(json.dumps(record))
    code, shown = bench.run(["pretrain", "--resume", str(stopped)])
    assert code == 3
    assert "run.json is damaged" in shown
    del record["sha256"]
    (stopped / "run.json").write_text(json.dumps(record))
    code, shown = bench.run(["pretrain", "--resume", str(stopped)])
    assert code == 2
    assert "was begun with seed 5, not 6" in shown


def test_settings_that_do_not_change_a_step_may_differ(bench: TinyRun, stopped: Path, expected: Outcome) -> None:
    words = ["pretrain", "--resume", str(stopped), "--set", "save_every=3", "keep_checkpoints=1", "log_every=2"]
    words.append("gradient_checkpointing=true")
    code, shown = bench.run(words)
    assert code == 0, shown
    found = outcome(stopped)
    assert found["kept"] == ["step-00000020"]
    assert {name: each for name, each in found.items() if name not in ("kept", "log")} == {
        name: each for name, each in expected.items() if name not in ("kept", "log")
    }
    assert json.loads((stopped / "run.json").read_text())["run"]["save_every"] == 3


@pytest.mark.parametrize("checkpoints", [True, False])
def test_another_corpus_is_refused(bench: TinyRun, stopped: Path, tmp_path: Path, checkpoints: bool) -> None:
    """Prepared from other text with the same tokenizer, at the same path or another."""
    if not checkpoints:
        shutil.rmtree(stopped / "checkpoints")
    (tmp_path / "b.txt").write_text("The mill ran. It stood still.\n\nA miller counts. It was dawn.\n\n" * 9)
    tokenizer = Corpus.open(bench.data).load_tokenizer()
    prepare([tmp_path / "b.txt"], tokenizer=tokenizer, output=tmp_path / "data", heldout=0.1)
    code, shown = bench.run(["pretrain", "--resume", str(stopped), "--set", f"data={tmp_path / 'data'}"])
    assert code == 3
    assert f"{tmp_path / 'data'} is not the corpus that {stopped} was begun with" in shown


def test_the_same_corpus_may_have_another_path(
    bench: TinyRun, stopped: Path, tmp_path: Path, expected: Outcome
) -> None:
    shutil.copytree(bench.data, tmp_path / "moved")
    code, shown = bench.run(["pretrain", "--resume", str(stopped), "--set", f"data={tmp_path / 'moved'}"])
    assert code == 0, shown
    assert outcome(stopped) == expected


NAMES = ["random.safetensors", "model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]


@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.faults) for name in NAMES[1:])])
def test_a_run_resumes_from_the_last_intact_checkpoint(
    bench: TinyRun, stopped: Path, expected: Outcome, name: str
) -> None:
    path = stopped / "checkpoints" / "step-00000008" / name
    whole = bytearray(path.read_bytes())
    whole[-9] ^= 4
    path.write_bytes(whole)
    for folder in path.parents[1].iterdir():  # and whatever the clock says
        os.utime(folder, (9e8, 9e8) if folder.name.endswith("4") else (1e8, 1e8))
    shown = bench.finish(stopped)
    assert f"{name} is damaged" in shown
    assert "Falling back to the checkpoint before it." in shown
    assert "resuming at step 4 of" in shown
    assert outcome(stopped) == expected


def test_shards_that_change_during_a_run_are_found(bench: TinyRun, stopped: Path, tmp_path: Path) -> None:
    """No checkpoint is saved after steps on unchecked tokens; the next start checks every byte."""
    shutil.copytree(bench.data, tmp_path / "data")
    shard = tmp_path / "data" / "train-00000.safetensors"

    def damage() -> None:
        with shard.open("r+b") as file:
            file.seek(-13, os.SEEK_END)
            file.write(b"\1")

    words = ["pretrain", "--resume", str(stopped), "--set", f"data={tmp_path / 'data'}"]
    code, shown = bench.run(words, at_call(fit, "accumulate_gradients", 2, damage))
    assert code == 3
    assert f"{shard} has changed since it was verified" in shown
    assert sorted(path.name for path in (stopped / "checkpoints").iterdir()) == ["step-00000004", "step-00000008"]
    code, shown = bench.run(words)
    assert code == 3
    assert f"{shard} is damaged" in shown


MEMORY = {
    "numpy": (MemoryError("Unable to allocate 7.45 GiB for an array"), "out of memory: Unable to allocate 7.45 GiB"),
    "gpu": (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7.45 GiB."), "Tried to allocate 7.45 GiB"),
    "host": (None, "out of memory: 40,000,000,000,000 more bytes were needed"),
}


@pytest.mark.parametrize("kind", MEMORY)
def test_out_of_memory_reports_the_size_and_the_settings_to_lower(
    bench: TinyRun, stopped: Path, expected: Outcome, kind: str
) -> None:
    error, message = MEMORY[kind]
    strike = fail(error) if error else lambda: torch.empty(10**13)
    code, shown = bench.run(["pretrain", "--resume", str(stopped)], at_call(fit, "accumulate_gradients", 3, strike))
    assert code == 1
    last = shown.splitlines()[-1]
    assert message in last
    assert "Training needs less with --set micro_batch_size=N, --set gradient_checkpointing=true" in last
    bench.finish(stopped)
    assert outcome(stopped) == expected


SIZES = [int(size) for size in np.geomspace(1, 500_000, 20)]


@pytest.mark.parametrize("sizes", [SIZES[10:13:2], pytest.param(SIZES, marks=pytest.mark.faults)], ids=["2", "20"])
def test_a_full_disk_stops_a_training_and_loses_nothing(
    bench: TinyRun, tmp_path: Path, expected: Outcome, sizes: list[int]
) -> None:
    """The error names what does not fit on the disk first: the log, the record, a checkpoint or the model."""
    for size in sizes:
        run = tmp_path / str(size)
        code, shown = bench.run(bench.command(run), partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size)))
        assert code in (0, 1, 2)
        if code:
            assert "cannot write" in shown or len(shown) >= size - 9, "what it says is a file here as well"
            assert not list(run.rglob(".bertkit-tmp-*"))
            assert store.latest(run / "checkpoints")[1] == []
        bench.finish(run)
        assert outcome(run) == expected


def test_too_little_disk_space_is_an_error_before_the_first_step(bench: TinyRun, tmp_path: Path) -> None:
    usage = shutil._ntuple_diskusage(10**9, 10**9 - 70_000, 70_000)
    run = tmp_path / "run"
    code, shown = bench.run(bench.command(run), lambda: setattr(shutil, "disk_usage", lambda path: usage))
    assert code == 1
    assert "run has 0.00 GB free, and the output needs 0.00 GB" in shown
    assert not run.exists()


def test_the_log_is_flushed_to_disk_before_the_checkpoint(
    bench: TinyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda number: names.append(Path(f"/proc/self/fd/{number}").readlink().name))
    assert app.run([*bench.command(tmp_path / "run"), "steps=4", "--quiet"]) == 0
    assert names.index("run") > names.index(tmp_path.name), "the run folder is in a folder that is on the disk"
    assert "run" in names[names.index("metrics.jsonl") : names.index("model.safetensors")]


def test_a_clock_that_jumps_changes_nothing(bench: TinyRun, tmp_path: Path, expected: Outcome) -> None:
    draw = random.Random(13)

    def jump() -> None:
        time.time = lambda: draw.uniform(-1e9, 4e9)
        time.time_ns = lambda: draw.randrange(2**61)

    run = tmp_path / "run"
    code, shown = bench.run(bench.command(run), jump)
    assert code == 0, shown
    assert outcome(run) == expected
    speeds = [
        record["tokens_per_second"] for record in read_metrics(run / "metrics.jsonl") if record["kind"] == "train"
    ]
    assert all(0 < speed < 1e9 for speed in speeds)


def test_minutes_do_not_depend_on_the_clock_of_the_machine(bench: TinyRun, tmp_path: Path) -> None:
    back = iter(range(10**9, 0, -3600))
    words = [*bench.command(tmp_path / "run"), "steps=null", "minutes=0.01"]
    code, shown = bench.run(words, lambda: setattr(time, "time", lambda: float(next(back))))
    assert code == 0, shown
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert 1 <= record["steps"] < 1000
    assert 0 <= record["seconds"] < 100


def spoil(step: int, value: float) -> Callable[[], None]:
    """A loss that is not finite from this step on."""

    def patch() -> None:
        original, calls = fit.accumulate_gradients, 0

        def wrapped(*arguments: Any, **named: Any) -> tuple[float, dict[str, float]]:
            nonlocal calls
            calls += 1
            loss, losses = original(*arguments, **named)
            return (value, {**losses, "mlm": value}) if calls >= step else (loss, losses)

        fit.accumulate_gradients = wrapped

    return patch


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_stays_non_finite_ends_the_run_and_keeps_intact_checkpoints(
    bench: TinyRun, tmp_path: Path, value: float
) -> None:
    """Ten in a row are counted across a resume."""
    run = tmp_path / "run"
    code, shown = bench.run(bench.command(run), spoil(6, value))
    assert code == 1
    assert "the loss or its gradient was not finite in 10 steps in a row, up to step 15." in shown
    skipped = [record["step"] for record in read_metrics(run / "metrics.jsonl") if record.get("skipped")]
    assert skipped == list(range(6, 15))
    newest, faults = store.latest(run / "checkpoints")
    assert newest is not None
    assert faults == []
    groups, state = store.load(newest)
    assert (state["step"], state["skipped_in_a_row"]) == (12, 7)
    assert all(weight.isfinite().all() for weight in groups["model"].values())
    code, shown = bench.run(bench.next_command(run), spoil(1, value))
    assert code == 1
    assert "up to step 15." in shown


def test_weights_that_are_not_finite_are_not_saved(bench: TinyRun, stopped: Path, expected: Outcome) -> None:
    def spoil_weights() -> None:
        def wrapped(optimizer: Optimizer, config: OptimizerConfig, factor: float) -> None:
            set_lr(optimizer, config, factor)
            optimizer.groups[0].parameters[0].data[0, 0] = float("inf")

        fit.__dict__["set_lr"] = wrapped

    code, shown = bench.run(["pretrain", "--resume", str(stopped)], spoil_weights)
    assert code == 1
    assert "a weight is not finite at step 12; the earlier checkpoints are valid" in shown
    bench.finish(stopped)
    assert outcome(stopped) == expected
