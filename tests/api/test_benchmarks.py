"""glue_table, glue_submit and squad_score from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit import api
from bertkit.errors import BertkitError


def test_glue_verbs_refuse_runs_of_other_tasks(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"reviews\.csv"):
        api.glue_table([workspace / "tuned"])
    with pytest.raises(BertkitError, match=r"reviews\.csv"):
        api.glue_submit([workspace / "tuned"], output=tmp_path / "out", progress="quiet")


def test_a_missing_file_of_predictions_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"no file at .*predictions\.json"):
        api.squad_score(tmp_path / "dev.json", tmp_path / "predictions.json")


def test_the_speed_of_a_run_is_measured_in_every_precision(workspace: Path) -> None:
    found = api.bench_inference(workspace / "run", workspace / "reviews.csv", limit=3, rounds=1, progress="quiet")
    assert [each.system.split()[1] for each in found.systems] == ["float32", "bfloat16", "int8"]
    assert (found.texts, found.left_out) == (3, {})
    assert all(each.texts_per_second > 0 and each.cosine > 0.9 for each in found.systems)
