"""Sweeps: every point is trained once, by any process and after any interruption, and the best one is kept."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import bertkit
from bertkit import scheduling
from bertkit.cli import app
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.finetuning.data import FinetuningData, load_data
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.run import run_seeds
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics
from bertkit.sweeps import sweep as tuning
from bertkit.sweeps.results import SweepResult

pytestmark = pytest.mark.usefixtures("without_shape_checks", "no_pictures")

COMMAND = [sys.executable, "-c", "import sys; from bertkit.cli.main import main; sys.exit(main())"]
GRID = ["lr=1e-3,1e-2", "batch_size=13,33"]
PATIENCE = 250


def tune(table: Path, model: Path, output: Path, grid: Any = GRID, **options: Any) -> SweepResult:
    return bertkit.tune(table, model=model, output=output, grid=grid, **{"epochs": 1, "progress": "quiet", **options})


@contextmanager
def started_process(table: Path, model: Path, output: Path, *more: object) -> Iterator[subprocess.Popen[str]]:
    words = ["tune", table, "--model", model, "-o", output, "--epochs", 1, "--progress", "plain", *more]
    with subprocess.Popen([*COMMAND, *map(str, words)], stdout=-3, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        yield process
        process.kill()
        watchdog.cancel()


def read_until(process: subprocess.Popen[str], start: str) -> list[str]:
    """The lines up to the first that begins with ``start``."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(start):
            return lines
    raise AssertionError(f"no line began with {start!r}: {lines}")


def steps(output: Path) -> dict[str, list[tuple[int, int]]]:
    """(seed, step) of every training step, by the name of the point."""
    return {
        path.parent.name: [(each["seed"], each["step"]) for each in read_metrics(path) if each["kind"] == "train"]
        for path in output.glob("points/*/metrics.jsonl")
    }


def points_run(lines: list[str]) -> list[str]:
    return [line.partition(": ")[2].strip() for line in lines if line.startswith("point ")]


def test_every_point_of_a_grid_is_trained_and_the_best_one_is_kept(table: Path, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    result = tune(table, model, output, seeds=2)
    assert {tuple(each.settings.values()) for each in result.points} == set(
        itertools.product(("1e-3", "1e-2"), ("13", "33"))
    )
    means = [sum(each.scores) / 2 for each in result.points]
    assert [each.mean for each in result.points] == pytest.approx(means)
    assert means == sorted(means, reverse=True)
    assert [each.best for each in result.points] == [max(each.scores) for each in result.points]
    assert result.best is not None
    assert (output / "best").resolve() == result.best.folder.resolve()
    assert [path.parent.resolve() for path in output.glob("points/*/model")] == [result.best.folder.resolve()]
    assert bertkit.evaluate(output / "best", progress="quiet")["accuracy"] == result.best.best
    written = json.loads((output / "sweep.json").read_text())
    assert [each["mean"] for each in written["points"]] == [each.mean for each in result.points]
    assert written["best"] == result.best.folder.name
    assert len((output / "sweep.md").read_text().splitlines()) == 2 + 2 + 4
    assert (output / "sweep.svg").stat().st_size > 5_000
    record = json.loads((output / "run.json").read_text())
    assert (record["kind"], record["ended"], record["best"]) == ("tune", "done", result.best.settings)


def test_of_an_error_the_smallest_mean_is_best(model: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "stars.csv"
    rows = ("the river is early,1.5", "the river is late,8.25") * 40
    numbers.write_text("text,stars\n" + "".join(f"{row}\n" for row in rows))
    settings = {"task.metric": "mean_absolute_error", "task.also": ["pearson"]}
    grid = ["lr=1e-30,3e-3"]
    result = bertkit.tune(
        numbers, model=model, dev=numbers, output=tmp_path / "s", grid=grid, epochs=3, set=settings, progress="quiet"
    )
    means = [point.mean for point in result.points if point.mean is not None]
    assert result.metric == "mean_absolute_error" and means == sorted(means) and means[0] < means[1]
    assert (tmp_path / "s" / "best").resolve() == result.points[0].folder.resolve()
    lines = [line for line in (tmp_path / "s" / "sweep.md").read_text().splitlines() if line.startswith("| ")]
    assert "mean mean_absolute_error" in lines[0]


def test_a_point_is_the_same_as_a_finetuning_with_its_settings(table: Path, model: Path, tmp_path: Path) -> None:
    result = tune(table, model, tmp_path / "sweep", {"lr": [1e-3, 1e-2], "optimizer.beta2": [0.9, 0.99]})
    assert result.best is not None
    settings = result.best.settings
    alone = {"lr": float(settings["lr"]), "set": [f"optimizer.beta2={settings['optimizer.beta2']}"]}
    bertkit.finetune(table, model=model, output=tmp_path / "alone", epochs=1, progress="quiet", **alone)  # type: ignore[arg-type]
    folders = (result.best.folder, tmp_path / "alone")
    mine, other = (load_file(folder / "model" / "model.safetensors") for folder in folders)
    assert all(torch.equal(value, other[name]) for name, value in mine.items())


def test_examples_are_encoded_once(table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[FinetuneRun] = []

    def build(run: FinetuneRun, progress: Progress, earlier: FinetuningData | None) -> FinetuningData:
        built.append(run)
        return load_data(run, progress, earlier)

    monkeypatch.setattr(tuning, "load_data", build)
    tune(table, model, tmp_path / "same", ["lr=1e-3,1e-2"])
    assert len(built) == 1
    tune(table, model, tmp_path / "cut", {"task.max_length": [7, 9]})
    assert [run.task.max_length for run in built[1:]] == [7, 9]


def test_finished_points_are_not_trained_again(table: Path, model: Path, tmp_path: Path) -> None:
    first = tune(table, model, tmp_path)
    before = steps(tmp_path)
    assert tune(table, model, tmp_path).points == first.points
    assert steps(tmp_path) == before


def test_processes_divide_the_points(table: Path, model: Path, tmp_path: Path) -> None:
    grid = ["lr=1e-4,1e-3,1e-2", "batch_size=7,13"]
    with started_process(table, model, tmp_path, "--grid", *grid) as other:
        lines = read_until(other, "point 1 of 6")
        result = tune(table, model, tmp_path, grid)
        assert other.stderr is not None
        lines += other.stderr.readlines()
        assert other.wait() == 0, lines
    assert len(result.points) == 6
    assert 1 <= len(points_run(lines)) < 6
    done = steps(tmp_path)
    assert len(done) == 6
    assert all(len(set(each)) == len(each) for each in done.values())


def test_the_point_of_a_killed_process_is_continued_with_its_finished_seeds(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ["lr=1e-3,1e-2"]
    point = tmp_path / "points" / "lr=1e-3"
    with started_process(table, model, tmp_path, "--grid", *grid, "--seeds", 5) as other:
        read_until(other, "seed 1: 1 of")
        other.send_signal(signal.SIGSTOP)
        kept = {path: path.stat().st_mtime_ns for path in point.glob("seeds/*.json")}
        assert kept

        def kill_and_sleep(seconds: float) -> None:  # all other points are done, and this one is waited for
            if other.poll() is None:
                assert [path.parent.name for path in tmp_path.glob("points/*/results.json")] == ["lr=1e-2"]
                other.kill()
                other.wait()
            time.sleep(seconds)

        monkeypatch.setattr(scheduling, "time", SimpleNamespace(sleep=kill_and_sleep))
        assert len(tune(table, model, tmp_path, grid, seeds=5).points) == 2
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(list(point.glob("seeds/*.json"))) == 5


def test_ctrl_c_ends_with_130_and_names_the_command_to_continue(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: Any) -> Any:
        if len(steps(tmp_path)) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return run_seeds(*arguments)

    words = ["tune", table, "--model", model, "-o", tmp_path, "--epochs", "1", "--grid", *GRID, "--progress", "plain"]
    monkeypatch.setattr(sys, "argv", ["bertkit", *map(str, words)])
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "run_seeds", interrupt)
        assert app.run(sys.argv[1:]) == 130
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert last_line == (
        "stopped; 2 of 4 points are finished and kept. Continue with the same command: "
        f"bertkit tune {table} --model {model} -o {tmp_path} --epochs 1 --grid {' '.join(GRID)}"
    )
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*/results.json")}
    assert app.run(sys.argv[1:]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split() == ["lr", "batch_size", "mean", "accuracy", "sd", "best", "seconds"]
    assert printed.err.splitlines()[-1] == f"next: bertkit evaluate {tmp_path / 'best'}"
    assert len(finished) == 2
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


def test_a_point_that_diverges_is_reported_as_failed(table: Path, model: Path, tmp_path: Path) -> None:
    """The weights are multiplied by 1 - lr * weight_decay in every step. JSON has no NaN to show as the loss."""
    options = {"set": ["optimizer.weight_decay=1e9"], "progress": "json"}
    result = tune(table, model, tmp_path / "some", ["lr=1000,1e-10"], **options)
    assert [each.settings["lr"] for each in result.points] == ["1e-10", "1000"]
    assert "not finite" in result.points[1].failed
    assert result.rows()[1][1:4] == ["-", "-", "-"]
    assert tune(table, model, tmp_path / "some", ["lr=1000,1e-10"], **options).points == result.points
    with pytest.raises(BertkitError, match=r"all 1 points have failed; the first one: .*not finite"):
        tune(table, model, tmp_path / "all", ["lr=1000"], **options)


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        (["lr=1e-3,x"], {}, "--grid: optimizer.lr is x; expected a number"),
        (["lrr=1e-3"], {}, "--grid: unknown key lrr. Did you mean optimizer.lr?"),
        (["lr"], {}, "--grid lr: expected setting=value,value"),
        (["lr=1e-3,"], {}, "--grid lr=1e-3,: expected setting=value,value"),
        (["lr=1,1"], {}, "--grid lr: 1 is given twice"),
        (["lr=1", "lr=2"], {}, "--grid: lr is given twice"),
        (["seeds=1,2"], {}, "--grid: seeds cannot be varied: give --seeds N"),
        (["epochs=1,2"], {}, "epochs is in --grid and has a value of its own"),
        (["optimizer.lr=1e-4,1e-5"], {"lr": 1e-3}, "optimizer.lr is in --grid and has a value of its own"),
        (["lr=1e-4", "optimizer.lr=1e-5"], {}, "--grid: lr and optimizer.lr are one setting"),
        (["layer_decay=0.8"], {"set": ["layer_decay=0.5"]}, "layer_decay is in --grid and has a value of its own"),
        (["lr=1e-5..1e-4"], {}, "--grid lr=1e-05..0.0001: a range needs --trials N"),
        ([f"optimizer.beta2=0.{'8' * 300}"], {}, "has no folder name of its own"),
        (["schedule.warmup=0.1,0.2"], {"trials": 0}, "trials is 0; it must be from 1 to"),
    ],
)
def test_invalid_grids_are_refused_before_anything_is_trained(
    grid: list[str], options: dict[str, Any], message: str, table: Path, model: Path, tmp_path: Path
) -> None:
    if options:
        pytest.importorskip("optuna")
    with pytest.raises(BertkitError) as caught:
        tune(table, model, tmp_path / "sweep", grid, **options)
    assert message in str(caught.value)
    assert caught.value.exit_code == WRONG_USAGE
    assert not (tmp_path / "sweep").exists()


def test_a_file_that_the_sweep_would_replace_is_refused(table: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.md").write_text("mine")
    with pytest.raises(BertkitError, match=r"sweep\.md"):
        tune(table, model, tmp_path)
    assert (tmp_path / "sweep.md").read_text() == "mine"


def test_another_sweep_in_the_same_folder_is_refused(table: Path, model: Path, tmp_path: Path) -> None:
    tune(table, model, tmp_path, ["lr=1e-3"])
    with pytest.raises(BertkitError, match="holds another run"):
        tune(table, model, tmp_path, ["lr=1e-2"])


def test_trials_need_optuna_and_a_grid_does_not(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BertkitError, match=r"--trials needs optuna: pip install 'bertkit\[tune\]'"):
        tune(table, model, tmp_path / "sweep", trials=3)
    assert not (tmp_path / "sweep").exists()
    assert len(tune(table, model, tmp_path / "sweep", ["lr=1e-3"]).points) == 1  # a grid does without


def test_a_missing_model_leaves_no_folder(table: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="no model at"):
        tune(table, tmp_path / "nowhere", tmp_path / "sweep", ["lr=1e-3"])
    assert not (tmp_path / "sweep").exists()
