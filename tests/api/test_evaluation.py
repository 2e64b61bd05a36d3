"""evaluate and compare from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bertkit
from bertkit.api import evaluation
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import Pipeline, load
from bertkit.machine.precision import Precision


def test_the_scores_of_the_fine_tuning_are_found_again(workspace: Path, tmp_path: Path) -> None:
    found = bertkit.evaluate(workspace / "tuned", output=tmp_path, progress="quiet")
    recorded = json.loads((workspace / "tuned" / "results.json").read_text())
    best = max(recorded["seeds"], key=lambda seed: seed["scores"]["accuracy"])
    assert found["accuracy"] == best["scores"]["accuracy"]


def test_another_task_needs_the_same_labels(workspace: Path) -> None:
    with pytest.raises(BertkitError, match=r"a model for .*reviews\.csv does not give the answers of squad:v1"):
        bertkit.evaluate(workspace / "tuned", on="squad:v1", progress="quiet")


def test_a_single_column_of_text_may_have_any_name(workspace: Path, tmp_path: Path) -> None:
    """As ``predict`` accepts it; a label of another name is not guessed."""
    rows = (workspace / "reviews.csv").read_text(encoding="utf-8")
    header, _, body = rows.partition("\n")
    renamed = tmp_path / "new.csv"
    renamed.write_text(header.replace("review", "comment") + "\n" + body, encoding="utf-8")
    of_same, of_renamed = (
        bertkit.evaluate(workspace / "tuned", data=data, output=tmp_path / data.stem, progress="quiet")
        for data in (workspace / "reviews.csv", renamed)
    )
    assert dict(of_same) == dict(of_renamed)
    renamed.write_text(f"{header.replace('review', 'comment')},note\n" + body.replace("\n", ",x\n"), encoding="utf-8")
    with pytest.raises(BertkitError, match=r'no column "review".*Name it with --text comment'):
        bertkit.evaluate(workspace / "tuned", data=renamed, output=tmp_path / "none", progress="quiet")


def test_the_column_of_the_label_may_be_named(workspace: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "new.csv"
    rows = (workspace / "reviews.csv").read_text(encoding="utf-8")
    renamed.write_text(rows.replace("id,review,label", "id,review,verdict"), encoding="utf-8")
    found = bertkit.evaluate(
        workspace / "tuned", data=renamed, label="verdict", output=tmp_path / "e", progress="quiet"
    )
    same = bertkit.evaluate(
        workspace / "tuned", data=workspace / "reviews.csv", output=tmp_path / "same", progress="quiet"
    )
    assert dict(found) == dict(same)
    comparison = bertkit.compare(workspace / "tuned", workspace / "tuned", renamed, label="verdict", progress="quiet")
    assert comparison.examples == 99


def test_a_comparison_is_computed_in_the_precision_that_is_asked_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Pipeline] = []

    def note(run: Path, precision: Precision | None = None) -> Pipeline:
        loaded.append(load(run, precision=precision))
        return loaded[-1]

    monkeypatch.setattr(evaluation, "load", note)
    bertkit.compare(workspace / "tuned", workspace / "tuned", precision="bfloat16", progress="quiet")
    assert [model.precision for model in loaded] == ["bfloat16"] * 2


def test_a_model_is_as_good_as_itself(workspace: Path) -> None:
    comparison = bertkit.compare(workspace / "tuned", workspace / "tuned", workspace / "reviews.csv", progress="quiet")
    assert comparison.scores["accuracy"].difference.value == 0
    assert comparison.scores["accuracy"].p == 1
    assert comparison.examples == 99
