"""The message about examples that are longer than a model reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.api.truncation import report_truncated
from bertkit.report.progress import Progress


def test_truncated_examples_are_counted_and_the_remedy_is_named(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = workspace / "reviews.csv"
    settings = ["task.max_length=4", "epochs=1", "limit=13"]
    bertkit.finetune(table, model=workspace / "run", output=tmp_path / "run", set=settings, progress="quiet")
    model = bertkit.load(tmp_path / "run")
    capsys.readouterr()
    with Progress("plain") as bar:
        report_truncated(model, bar)
        assert capsys.readouterr().err == "", "nothing was truncated so far"
        model.classify("river stone early garden")
        report_truncated(model, bar)
    shown = capsys.readouterr().err
    assert shown.startswith("1 example was cut to 4 tokens, as in training.")
    assert "--set task." in shown
