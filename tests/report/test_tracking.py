"""Metrics of runs in TensorBoard's format."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.report import tracking
from bertkit.storage.atomic import write_file
from bertkit.storage.json_log import format_record

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

RECORDS = [
    {"kind": "train", "step": 7, "loss/mlm": 9.5, "skipped": False},
    {"kind": "dev", "step": 13, "seed": 2, "accuracy": 0.75},
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run.json").write_text('{"ended": null}')
    (tmp_path / "metrics.jsonl").write_text("".join(map(format_record, RECORDS)))
    return tmp_path


def read(run: Path) -> dict[str, list[tuple[int, float]]]:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loader.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_replaying_again_replaces_the_curves(run: Path) -> None:
    assert tracking.replay(run) == tracking.replay(run) == 2
    curves = read(run)
    assert curves["train/loss/mlm"] == [(7, 9.5)]
    assert curves["dev/accuracy/seed 2"] == [(13, 0.75)]


def test_a_growing_run_is_followed_to_its_end(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "_SECONDS_BETWEEN_READS", 0.01)

    def train() -> None:
        with (run / "metrics.jsonl").open("a") as file:
            line = format_record({"kind": "train", "step": 37, "loss/mlm": 1.5})
            file.write(line[:30])
            file.flush()
            file.write(line[30:])
        (run / "run.json").write_text('{"ended": "done"}')

    training = threading.Timer(0.05, train)
    training.start()
    assert tracking.replay(run, follow=True) == 3
    training.join()
    assert read(run)["train/loss/mlm"] == [(7, 9.5), (37, 1.5)]


def test_a_log_that_a_resume_wrote_anew_is_read_from_its_beginning(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "_SECONDS_BETWEEN_READS", 0.01)

    def resume() -> None:
        lines = [format_record({"kind": "train", "step": step, "loss/mlm": float(step)}) for step in (7, 8, 9)]
        write_file(run / "metrics.jsonl", lambda path: path.write_text("".join(lines)))
        (run / "run.json").write_text('{"ended": "done"}')

    training = threading.Timer(0.05, resume)
    training.start()
    assert tracking.replay(run, follow=True) == 3
    training.join()
    assert read(run)["train/loss/mlm"] == [(7, 7.0), (8, 8.0), (9, 9.0)]


def test_missing_metrics_and_missing_tensorboard_are_reported(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BertkitError, match=r"has no metrics\.jsonl"):
        tracking.replay(run / "tensorboard")
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(BertkitError, match=r"pip install 'bertkit\[track\]'"):
        tracking.replay(run)
