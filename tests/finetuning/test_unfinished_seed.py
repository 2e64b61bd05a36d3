"""A restart that is interrupted continues with the same bits."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.checkpoint import training_state
from bertkit.errors import BertkitError, DivergenceError
from bertkit.finetuning import train_seed, unfinished_seed
from bertkit.finetuning.results import FinetuneResult
from bertkit.machine.interrupts import Interrupted
from bertkit.runs import read_metrics
from bertkit.training.fit import Step, fit

pytestmark = pytest.mark.usefixtures("no_pictures", "without_shape_checks")

STEPS_PER_EPOCH = 7
OPTIONS: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 13,
    "seeds": 2,
    "lr": 1e-2,
    "progress": "plain",
    "no_baseline": True,
}


def finetune(table: Path, model: Path, output: Path) -> FinetuneResult:
    return bertkit.finetune(table, model=model, output=output, **OPTIONS)


def stop_after(step_number: int, monkeypatch: pytest.MonkeyPatch, number: signal.Signals = signal.SIGINT) -> None:
    """Send a signal in this step of every seed, or of what is left of it."""

    def fit_with_a_signal(state: Any, source: Any, plan: Any) -> Iterator[Step]:
        for step in fit(state, source, plan):
            if step.step == step_number:
                os.kill(os.getpid(), number)
            yield step

    monkeypatch.setattr(train_seed, "fit", fit_with_a_signal)


def outcome(result: FinetuneResult, folder: Path) -> tuple[object, ...]:
    """Everything but the seconds."""
    seeds = [(each.seed, each.epochs, each.best_epoch, each.scores) for each in result.seeds]
    log = [{name: value for name, value in each.items() if name != "crc32"} for each in read_metrics(folder)]
    return seeds, log, (folder.parent / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("stop_at", [3, STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH + 1])
def test_an_interrupted_seed_has_the_same_bits(
    stop_at: int,
    table: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    straight = finetune(table, model, tmp_path / "straight")
    assert len(read_metrics(tmp_path / "straight" / "metrics.jsonl")) == 2 * 3 * (STEPS_PER_EPOCH + 1)
    output = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        stop_after(stop_at, patch)
        for seed in (0, 1):
            with pytest.raises(Interrupted, match=f"stopped in seed {seed} after step {stop_at} of 21, which is saved"):
                finetune(table, model, output)
            assert [path.name for path in training_state.checkpoints(output / "checkpoints")] == [f"step-{stop_at:08}"]
    found = finetune(table, model, output)
    assert f"seed 1 continues after step {stop_at} of 21" in capsys.readouterr().err
    assert not (output / "checkpoints").exists()
    assert outcome(found, output / "metrics.jsonl") == outcome(straight, tmp_path / "straight" / "metrics.jsonl")
    assert all(each.seconds > 0 and each.examples_per_second > 0 for each in found.seeds)


def test_a_killed_seed_continues_from_what_was_saved_last(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    straight = finetune(table, model, tmp_path / "straight")
    monkeypatch.setattr(unfinished_seed, "_SECONDS_BETWEEN_SAVES", 0.0)

    def fit_and_die(state: Any, source: Any, plan: Any) -> Iterator[Step]:
        for step in fit(state, source, plan):
            if step.step == STEPS_PER_EPOCH + 2:
                raise MemoryError
            yield step

    with monkeypatch.context() as patch:
        patch.setattr(train_seed, "fit", fit_and_die)
        with pytest.raises(MemoryError):
            finetune(table, model, tmp_path / "killed")
    found = finetune(table, model, tmp_path / "killed")
    assert f"seed 0 continues after step {STEPS_PER_EPOCH + 1} of 21" in capsys.readouterr().err
    assert outcome(found, tmp_path / "killed" / "metrics.jsonl") == outcome(
        straight, tmp_path / "straight" / "metrics.jsonl"
    )


def test_what_a_finished_seed_has_left_is_not_taken_for_that_of_the_next(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_seed, "_SECONDS_BETWEEN_SAVES", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(train_seed, "delete_unfinished", lambda folder: None)  # as if it was killed before
        stop_after(3 * STEPS_PER_EPOCH, patch)
        with pytest.raises(Interrupted, match="stopped before seed 1"):
            finetune(table, model, tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "step-00000020").exists()
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(Interrupted, match="stopped in seed 1 after step 3"):
            finetune(table, model, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000003"]
    assert len(finetune(table, model, tmp_path / "run").seeds) == 2


def test_a_signal_before_the_first_step_saves_nothing(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(3 * STEPS_PER_EPOCH, monkeypatch, signal.SIGTERM)
    with pytest.raises(Interrupted, match=r"stopped before seed 1\. Continue with the same command") as stopped:
        finetune(table, model, tmp_path / "run")
    assert stopped.value.exit_code == 143
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_disk_without_room_for_the_state_does_not_end_the_training(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> None:
        raise BertkitError("cannot write it: No space left on device.")

    monkeypatch.setattr(unfinished_seed, "_SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr(training_state, "save", fail)
    assert len(finetune(table, model, tmp_path / "run").seeds) == 2
    assert "No space left on device. The training goes on" in capsys.readouterr().err


def test_a_damaged_state_is_named(table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(3, patch)
        with pytest.raises(Interrupted):
            finetune(table, model, tmp_path / "run")
    (file,) = (tmp_path / "run" / "checkpoints").glob("*/best.safetensors")
    file.write_bytes(b"")
    with pytest.raises(BertkitError, match=r"no checkpoint in .* is intact.* to start again"):
        finetune(table, model, tmp_path / "run")


def test_a_seed_that_diverges_leaves_no_state(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_seed, "_SECONDS_BETWEEN_SAVES", 0.0)

    def diverge(state: Any, source: Any, plan: Any) -> Iterator[Step]:
        for step in fit(state, source, plan):
            if step.step == 3:
                raise DivergenceError("not finite")
            yield step

    monkeypatch.setattr(train_seed, "fit", diverge)
    with pytest.raises(DivergenceError):
        finetune(table, model, tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()
