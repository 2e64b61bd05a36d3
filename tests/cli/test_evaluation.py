"""evaluate and compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.workspace import run, run_json


def test_a_fine_tuned_model_is_evaluated(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = run_json(capsys, "evaluate", workspace / "tuned", "--json", "--quiet")
    assert 0 <= scores["accuracy"] <= 1
    words = ("evaluate", workspace / "tuned", "--data", workspace / "reviews.csv", "--json")
    assert run_json(capsys, *words)["accuracy"] >= 0
    run("evaluate", workspace / "tuned")
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["score", "accuracy", "macro_f1", "matthews", "10"]
    assert lines[5].startswith("accuracy: ") and "this model" in lines[5]
    assert "with 10 dev examples the score is uncertain, as its interval shows" in lines[6:]
    assert "the whole report:" in printed.err


def test_a_report_is_written_where_it_is_wanted(workspace: Path, tmp_path: Path) -> None:
    words = ("evaluate", workspace / "tuned", "--data", workspace / "reviews.csv", "--quiet")
    run(*words, "-o", tmp_path / "a" / "report")
    assert sorted(path.name for path in (tmp_path / "a" / "report").iterdir()) == ["report.html", "report.json"]
    report = json.loads((tmp_path / "a" / "report" / "report.json").read_text())
    assert (report["examples"], report["split"]) == (99, "dev")
    assert report["scores"]["accuracy"]["low"] <= report["accuracy"] <= report["scores"]["accuracy"]["high"]
    run("evaluate", workspace / "tuned", "--quiet")
    assert (workspace / "tuned" / "evaluation-dev" / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_two_models_are_compared(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", workspace / "tuned", workspace / "tuned")
    comparison = run_json(capsys, *words, workspace / "reviews.csv", "--json")
    assert comparison["scores"]["accuracy"]["p"] == 1.0
    assert comparison["examples"] == 99
    run(*words)
    assert capsys.readouterr().out.splitlines()[-1].startswith("No difference larger than chance between")
