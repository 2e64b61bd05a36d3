"""glue table, glue submit, squad score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.workspace import run, run_json

from bertkit.cli import app

QUESTIONS = {
    "version": "1.1",
    "data": [
        {
            "title": "mill",
            "paragraphs": [
                {
                    "context": "The mill opened in 1867.",
                    "qas": [
                        {"id": "a", "question": "When?", "answers": [{"text": "1867", "answer_start": 19}]},
                        {"id": "b", "question": "What?", "answers": [{"text": "The mill", "answer_start": 0}]},
                    ],
                }
            ],
        }
    ],
}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(QUESTIONS))
    return path


def test_squad_scores_are_shown(questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.json").write_text(json.dumps({"a": "in 1867", "c": "x"}))
    run("squad", "score", questions, tmp_path / "p.json")
    printed = capsys.readouterr()
    scores = dict(line.split() for line in printed.out.splitlines()[1:])
    assert float(scores["exact_match"]) == 0.0
    assert float(scores["f1"]) == pytest.approx(100 / 3, abs=1e-3)
    assert "1 question without a prediction, counted as wrong: b" in printed.err
    assert "1 prediction of no question, ignored: c" in printed.err
    assert run_json(capsys, "squad", "score", questions, tmp_path / "p.json", "--json") == {
        "exact_match": 0.0,
        "f1": pytest.approx(100 / 3),
    }


@pytest.mark.parametrize("verb", ["table", "submit"])
def test_glue_verbs_refuse_runs_of_other_tasks(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    output = ["-o", str(tmp_path)] if verb == "submit" else []
    assert app.run(["glue", verb, str(workspace / "tuned"), *output]) == 2
    assert capsys.readouterr().err.startswith("error: ")
