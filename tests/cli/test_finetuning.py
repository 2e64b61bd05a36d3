"""finetune and tune."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import huggingface_hub
import pytest
from tests.workspace import run, run_json


def test_scores_of_every_seed_are_shown(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("finetune", workspace / "reviews.csv", "--model", workspace / "run", "--limit", 13, "--epochs", 1)
    run(*words, "--seeds", 2, "--first-seed", 3, "-o", tmp_path / "run", "--progress", "plain")
    printed = capsys.readouterr()
    header, *rows, last, verdict = [line.split() for line in printed.out.splitlines()]
    assert header[:3] == ["seed", "epoch", "accuracy"]
    assert [row[0] for row in rows] == ["3", "4"]
    assert last[:2] == ["accuracy:", "mean"]
    assert verdict[0] == "accuracy:"
    assert {"this", "model"} <= set(verdict)
    assert printed.err.splitlines()[-1] == f"next: bertkit evaluate {tmp_path / 'run'}"


def test_a_sweep_shows_the_best_configuration_first(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("tune", workspace / "reviews.csv", "--model", workspace / "run", "--limit", 13, "--epochs", 1)
    result = run_json(capsys, *words, "--grid", "lr=0.01,0", "batch_size=7", "-o", tmp_path / "sweep", "--json")
    means = [point["mean"] for point in result["points"]]
    assert len(means) == 2
    assert means == sorted(means, reverse=True)
    assert (tmp_path / "sweep" / "best").exists()
    run(*words, "--grid", "lr=0.01,0", "batch_size=7", "-o", tmp_path / "sweep", "--quiet")
    assert capsys.readouterr().out.splitlines()[-1].startswith("accuracy: ")
    assert result["points"][0]["verdict"].startswith("accuracy: ")


def test_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = {each["name"]: each for each in run_json(capsys, "finetune", "--list", "--json")}
    assert listed["glue:sst2"]["files"] == "dev.tsv, test.tsv, train.tsv"
    run("finetune", "--list")
    lines = capsys.readouterr().out.splitlines()
    assert "glue:rte        accuracy" in lines
    assert "    files: dev.tsv, test.tsv, train.tsv" in lines
    assert max(map(len, lines)) <= 80


def test_an_edited_model_card_does_not_spoil_the_model(workspace: Path) -> None:
    cards = {workspace / name / "model" / "README.md": name for name in ("run", "tuned")}
    for path, name in cards.items():
        tag = huggingface_hub.ModelCard.load(path).data.pipeline_tag
        assert tag == {"run": "fill-mask", "tuned": "text-classification"}[name]
        assert str(workspace) not in path.read_text()
        with path.open("a") as file:
            file.write("My own words.\n")
    card = (workspace / "tuned" / "model" / "README.md").read_text()
    digest = hashlib.sha256((workspace / "reviews.csv").read_bytes()).hexdigest()
    assert digest in card
    assert "were chosen by the scores on dev" in card
    run("evaluate", workspace / "tuned", "--quiet")


def test_the_record_has_the_hashes_of_the_data(workspace: Path) -> None:
    table = workspace / "reviews.csv"
    record = json.loads((workspace / "tuned" / "run.json").read_text())
    assert record["data"]["train"] == [
        {"file": "reviews.csv", "bytes": table.stat().st_size, "sha256": hashlib.sha256(table.read_bytes()).hexdigest()}
    ]
    assert sum(record["examples"].values()) == 99
    (text,) = json.loads((workspace / "run" / "run.json").read_text())["data"]
    assert text["sha256"] == hashlib.sha256((workspace / "a.txt").read_bytes()).hexdigest()
