from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import bertkit
from bertkit.evaluation.evaluate import evaluate_model, read_split
from bertkit.finetuning.cautions import (
    caution_about_answers,
    caution_about_epochs,
    caution_about_size,
    caution_about_thresholds,
    caution_about_zero,
)
from bertkit.finetuning.results import SeedResult
from bertkit.inference.pipeline import load
from bertkit.report.progress import Progress
from bertkit.scores import UNDEFINED
from bertkit.task_types import MultiLabelTask, TextClassificationTask


def seed_result(*accuracies: float) -> SeedResult:
    epochs = [{"accuracy": each} for each in accuracies]
    best = 1 + accuracies.index(max(accuracies))
    return SeedResult(seed=0, epochs=epochs, best_epoch=best, scores={}, seconds=1.0, examples_per_second=1.0)


@pytest.mark.parametrize(
    ("examples", "expected"), [(1, ["98 points up or down"]), (49, ["14 points up or down"]), (200, []), (872, [])]
)
def test_few_examples(examples: int, expected: list[str]) -> None:
    found = caution_about_size(examples, "accuracy")
    assert [each.partition(" by ")[2] for each in found] == expected


def test_few_examples_of_a_correlation() -> None:
    """That of 30 unrelated pairs is between -0.36 and 0.36 with 95 %."""
    (found,) = caution_about_size(30, "spearman", "test")
    assert found == "with 30 test examples a score is uncertain by 0.36 up or down"


def test_one_answer_for_everything() -> None:
    assert 'predicts "good" for every' in caution_about_answers(["good", "bad"], ["good", "good"])[0]
    assert caution_about_answers(["good", "bad"], ["good", "bad"]) == []


def test_the_same_labels_for_everything() -> None:
    (said,) = caution_about_answers([("a",), ()], [("a", "b"), ("a", "b")])
    assert said == 'the model predicts "a" and "b" for every dev example: it has learned nothing'
    (said,) = caution_about_answers([("a",), ()], [(), ()])
    assert said.startswith("the model predicts no label for every")


def test_one_answer_where_most_are_right_asks_for_weights() -> None:
    (said,) = caution_about_answers(["good"] * 19 + ["bad"], ["good"] * 20)
    assert said.endswith("It is right for 95% of them; --class-weights balanced may help")
    (said,) = caution_about_answers([""] * 19 + ["a mill"], [""] * 20, has_weights=False)
    assert said.endswith("It is right for 95% of them")


def test_one_answer_is_right_where_all_gold_answers_are_equal() -> None:
    assert caution_about_answers(["good", "good"], ["good", "good"]) == []


def test_thresholds_that_were_chosen_on_few_examples() -> None:
    task = MultiLabelTask(name="m", labels=("a", "b"))
    (said,) = caution_about_thresholds(task, [("a",), ("a", "b"), ()] * 20)
    assert "of which 30 have it on average: other texts will have lower scores" in said
    assert caution_about_thresholds(task, [("a",), ("a", "b"), ()] * 50) == []
    assert caution_about_thresholds(task, [("a", "b")], "test") == []
    assert caution_about_thresholds(TextClassificationTask(name="c", metric="f1", labels=("a", "b")), ["a"]) == []


def test_a_score_of_zero_says_that_nothing_is_right() -> None:
    assert caution_about_zero(0.0, "f1")[0].startswith("f1 is 0: nothing that the model finds in dev is right")
    assert caution_about_zero(0.01, "f1") == caution_about_zero(UNDEFINED, "f1") == []
    assert caution_about_zero(0.0, "matthews") == [], "a correlation of 0 has a sentence with its answers"


def test_the_last_epoch_was_the_best_of_every_seed() -> None:
    rising = seed_result(0.5, 0.4, 0.6)
    assert "--epochs 6 may be better" in caution_about_epochs([rising, seed_result(0.1, 0.2, 0.3)], "accuracy")[0]
    assert caution_about_epochs([rising, seed_result(0.5, 0.7, 0.6)], "accuracy") == []
    assert caution_about_epochs([rising, seed_result(1.0, 1.0, 1.0)], "accuracy") == [], "more epochs change nothing"
    assert caution_about_epochs([seed_result(0.5, 1.0)], "accuracy") == [], "nothing is better than all"
    assert caution_about_epochs([seed_result(0.5)], "accuracy") == []
    assert caution_about_epochs([seed_result(UNDEFINED, 0.6)], "accuracy") == []
    assert caution_about_epochs([replace(rising, scores={"pearson": UNDEFINED})], "accuracy") == []


@pytest.mark.usefixtures("no_pictures")
def test_six_rows_are_not_passed_over_in_silence(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ("early river,good", "late stone,bad", "garden music,good", "seven silver,bad", "letter,good", "bridge,bad")
    table = tmp_path / "tiny.csv"
    table.write_text("text,label\n" + "".join(f"{row}\n" for row in rows))
    run = tmp_path / "run"
    result = bertkit.finetune(table, model=model, dev=table, output=run, epochs=1, progress="plain")
    shown = capsys.readouterr().err
    assert "with 6 dev examples a score is uncertain by 40 points up or down" in shown
    assert any("uncertain by 40 points" in each for each in result.warnings)
    assert any("uncertain by 40 points" in each for each in json.loads((run / "results.json").read_text())["warnings"])
    assert "- With 6 dev examples a score is uncertain by 40 points up or down.\n" in (
        run / "model" / "README.md"
    ).read_text(encoding="utf-8")
    pipeline = load(run)
    found = evaluate_model(pipeline, read_split(pipeline.task, None, "dev"), None, Progress("quiet"))
    assert any("uncertain by 40 points" in each for each in found.warnings)
    assert "uncertain by 40 points" in (run / "evaluation-dev" / "report.html").read_text()
