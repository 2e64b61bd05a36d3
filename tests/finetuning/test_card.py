from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.runs import read_run

pytestmark = pytest.mark.usefixtures("no_pictures")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 33, "progress": "quiet"}


def read_card(run: Path) -> str:
    return (run / "model" / "README.md").read_text(encoding="utf-8")


def test_a_card_states_data_scores_and_command(table: Path, model: Path, tmp_path: Path) -> None:
    result = bertkit.finetune(table, model=model, output=tmp_path / "run", seeds=2, lr=1e-3, **QUICK)
    card = read_card(tmp_path / "run")
    (source,) = read_run(tmp_path / "run")["data"]["train"]
    assert 'pipeline_tag: "text-classification"' in card
    assert f"{source['sha256']}" in card and "train: reviews.csv" in card
    assert "tiny fine-tuned for" in card
    assert f"Seed {result.best.seed} is kept; accuracy {result.mean:.4f} ± {result.sd:.4f} over 2 seeds" in card
    assert "these scores are optimistically biased" in card
    assert "Dev is 10% of the training file, held out" in card
    for seed in result.seeds:
        assert f"seed {seed.seed}" in card


def test_a_card_names_changed_settings_only(table: Path, model: Path, tmp_path: Path) -> None:
    bertkit.finetune(table, model=model, output=tmp_path / "run", lr=1e-3, **QUICK)
    card = read_card(tmp_path / "run")
    assert "optimizer.lr" in card
    assert "optimizer.beta2" not in card


def test_limits_on_the_examples_are_stated(table: Path, model: Path, tmp_path: Path) -> None:
    bertkit.finetune(table, model=model, output=tmp_path / "run", limit=13, set=["dev_limit=7"], **QUICK)
    card = read_card(tmp_path / "run")
    assert read_run(tmp_path / "run")["examples"] == {"train": 13, "dev": 7}
    assert "Only the first 13 training examples were used." in card
    assert "Only the first 7 dev examples were scored." in card


def test_training_from_scratch_is_stated(table: Path, model: Path, tmp_path: Path) -> None:
    bertkit.finetune(table, model=model, output=tmp_path / "run", from_scratch=True, **QUICK)
    assert "tiny, with new weights, fine-tuned for" in read_card(tmp_path / "run")


def test_the_baselines_and_the_verdict_are_stated(table: Path, model: Path, tmp_path: Path) -> None:
    result = bertkit.finetune(table, model=model, output=tmp_path / "run", **QUICK)
    card = read_card(tmp_path / "run")
    for each in result.baselines:
        row = next(line for line in card.splitlines() if line.startswith(f"| {each.name} "))
        assert f"{each.scores['accuracy']:.4f}" in row
    assert f"\n{result.verdict()}.\n" in card
    assert f"- W{result.warnings[-1].removeprefix('w')}." in card
