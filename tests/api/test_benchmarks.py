"""glue_table, glue_submit and squad_score from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError


def test_glue_verbs_refuse_runs_of_other_tasks(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"reviews\.csv"):
        bertkit.glue_table([workspace / "tuned"])
    with pytest.raises(BertkitError, match=r"reviews\.csv"):
        bertkit.glue_submit([workspace / "tuned"], output=tmp_path / "out", progress="quiet")


def test_a_missing_file_of_predictions_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"no file at .*predictions\.json"):
        bertkit.squad_score(tmp_path / "dev.json", tmp_path / "predictions.json")
