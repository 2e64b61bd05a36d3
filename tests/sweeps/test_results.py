from __future__ import annotations

import json
import math
from pathlib import Path

from bertkit.config.records import to_plain
from bertkit.finetuning.results import SeedResult, summarize_seeds
from bertkit.runs import FAILED, FORMAT, RunFolder
from bertkit.scores import UNDEFINED
from bertkit.storage.atomic import write_json
from bertkit.sweeps.results import PointResult, SweepResult, format_settings, read_point, write_table

SETTINGS = {"lr": "1e-3", "batch_size": "13"}


def write_point(folder: Path, *accuracies: float, ended: str | None = "done") -> None:
    seeds = [
        SeedResult(
            seed=seed,
            epochs=[{"accuracy": accuracy}],
            best_epoch=1,
            scores={"accuracy": accuracy},
            seconds=7.0,
            examples_per_second=1.0,
        )
        for seed, accuracy in enumerate(accuracies)
    ]
    folder.mkdir(parents=True)
    write_json(folder / "run.json", {"format": FORMAT, "kind": "finetune", "run": {}, "ended": ended})
    if seeds:
        write_json(folder / "results.json", to_plain(summarize_seeds(RunFolder(folder), "accuracy", seeds)))


def test_a_finished_point_has_the_scores_of_all_seeds(tmp_path: Path) -> None:
    write_point(tmp_path / "point", 0.5, 0.75)
    result = read_point(tmp_path / "point", SETTINGS)
    assert result is not None
    assert (result.scores, result.mean, result.best, result.seconds) == ([0.5, 0.75], 0.625, 0.75, 14.0)
    assert (result.settings, result.failed) == (SETTINGS, "")


def test_a_failed_point_has_the_error_and_no_scores(tmp_path: Path) -> None:
    write_point(tmp_path / "point", ended=f"{FAILED}the loss is not finite")
    result = read_point(tmp_path / "point", SETTINGS)
    assert result is not None
    assert (result.failed, result.scores, result.mean) == ("the loss is not finite", [], None)


def test_a_point_that_is_not_finished_has_no_result(tmp_path: Path) -> None:
    assert read_point(tmp_path / "nowhere", SETTINGS) is None
    write_point(tmp_path / "point", 0.5, ended=None)
    assert read_point(tmp_path / "point", SETTINGS) is None


def test_a_point_with_an_undefined_score_is_a_point(tmp_path: Path) -> None:
    write_point(tmp_path / "point", UNDEFINED, 0.75)
    result = read_point(tmp_path / "point", SETTINGS)
    assert result is not None and result.mean is not None and math.isnan(result.mean)
    write_table(SweepResult(folder=tmp_path, metric="accuracy", points=[result]))
    assert "undefined" in (tmp_path / "sweep.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "sweep.json").read_text(encoding="utf-8"))["points"][0]["mean"] is None


def sweep(folder: Path) -> SweepResult:
    scored = PointResult(
        settings=SETTINGS, folder=folder / "a", scores=[0.5, 0.75], mean=0.625, sd=0.1768, best=0.75, seconds=13.4
    )
    failed = PointResult(settings={**SETTINGS, "lr": "1e30"}, folder=folder / "b", failed="the loss is not finite")
    return SweepResult(folder=folder, metric="accuracy", points=[scored, failed])


def test_the_table_has_a_row_per_point(tmp_path: Path) -> None:
    result = sweep(tmp_path)
    assert result.best is result.points[0]
    assert result.header() == ["lr", "batch_size", "mean accuracy", "sd", "best", "seconds"]
    assert result.rows() == [["1e-3", "13", 0.625, 0.1768, 0.75, 13], ["1e30", "13", "-", "-", "-", 0]]
    write_table(result)
    lines = (tmp_path / "sweep.md").read_text().splitlines()
    assert (lines[0], len(lines)) == ("# Sweep", 2 + 2 + 2)
    written = json.loads((tmp_path / "sweep.json").read_text())
    assert (written["best"], len(written["points"])) == ("a", 2)


def test_a_sweep_without_a_scored_point_has_no_best(tmp_path: Path) -> None:
    result = SweepResult(folder=tmp_path, metric="accuracy", points=sweep(tmp_path).points[1:])
    assert result.best is None
    write_table(result)
    assert json.loads((tmp_path / "sweep.json").read_text())["best"] is None


def test_settings_are_shown_as_they_are_typed() -> None:
    assert format_settings(SETTINGS) == "lr=1e-3 batch_size=13"
