from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.evaluation.evaluate import evaluate_model, read_split
from bertkit.finetuning.cautions import caution_about_size, caution_beside_interval, list_cautions
from bertkit.finetuning.results import SeedResult
from bertkit.inference.pipeline import load
from bertkit.metrics.bootstrap import interval_by_size
from bertkit.report.progress import Progress
from bertkit.scores import UNDEFINED
from bertkit.task_types import (
    FileTask,
    MultiLabelTask,
    QuestionAnsweringTask,
    TaggingTask,
    TextClassificationTask,
)
from bertkit.task_types.records import TASK_TYPES

GOLD = ["good", "bad"] * 100
CLASSES = TextClassificationTask(name="c", metric="accuracy", labels=("good", "bad"))
LABELS = MultiLabelTask(name="m", labels=("a", "b"))


def seed_result(*accuracies: float) -> SeedResult:
    epochs = [{"accuracy": each} for each in accuracies]
    best = 1 + accuracies.index(max(accuracies))
    return SeedResult(seed=0, epochs=epochs, best_epoch=best, scores={}, seconds=1.0, examples_per_second=1.0)


def cautions(
    gold: Sequence[object] = ("good", "bad") * 100,
    predicted: Sequence[object] = (),
    score: float = 0.5,
    *accuracies: Sequence[float],
    task: FileTask = CLASSES,
    metric: str = "accuracy",
    **about: Any,
) -> list[str]:
    """Those of a model whose seeds had these ``accuracies``."""
    seeds = [seed_result(*each) for each in accuracies]
    return list_cautions(replace(task, metric=metric), gold, predicted, score, trained=task, seeds=seeds, **about)


@pytest.mark.parametrize(
    ("examples", "metric", "score", "expected"),
    [
        (1, "accuracy", 0.5, "1 other may give 5.5 % to 94.5 %"),
        (4, "pearson", 0.5, "and so few say little"),
        (49, "accuracy", 0.5, "49 others may give 36.5 % to 63.5 %"),
        (49, "accuracy", 1.0, "49 others may give 92.7 % to 100.0 %"),
        (30, "spearman", 0.0, "30 others may give -0.3603 to 0.3603"),
        (30, "spearman", 0.97, "30 others may give 0.9373 to 0.9858"),
        (30, "mean_absolute_error", 1e39, "30 others may give 7.29474e+38 to 1.27053e+39"),
        (30, "my_points", 35.0, "and so few say little"),
    ],
)
def test_few_examples(examples: int, metric: str, score: float, expected: str) -> None:
    (found,) = caution_about_size(examples, metric, score)
    assert found.partition(f" {metric} is uncertain: ")[2] == expected


def test_nothing_is_said_of_many_examples_or_of_an_undefined_score() -> None:
    assert caution_about_size(200, "accuracy", 0.5) == caution_about_size(30, "pearson", UNDEFINED) == []


def test_an_interval_says_how_uncertain_a_score_of_few_examples_is() -> None:
    (found,) = caution_beside_interval(30, "test", has_interval=True)
    assert found == "with 30 test examples the score is uncertain, as its interval shows"
    assert caution_beside_interval(200, "test", has_interval=True) == []
    (found,) = caution_beside_interval(4, "test", has_interval=False)
    assert found == "with 4 test examples the score is uncertain, and so few have no interval"


def test_one_answer_for_everything() -> None:
    (found,) = cautions(GOLD, ["good"] * 200)
    assert found == 'the model predicts "good" for every dev example: it has learned nothing'
    assert cautions(GOLD, GOLD) == []


def test_one_answer_for_nearly_everything() -> None:
    (found,) = cautions(GOLD, ["good"] * 198 + ["bad"] * 2)
    assert found == 'the model predicts "good" for 198 of 200 dev examples: it has learned next to nothing'
    assert cautions(GOLD, ["good"] * 197 + ["bad"] * 3) == []
    assert cautions(["good"] * 190 + ["bad"] * 10, ["good"] * 198 + ["bad"] * 2) == []  # most of them are right


def test_the_same_labels_for_everything() -> None:
    gold = [("a",), ()] * 100
    (found,) = cautions(gold, [("a", "b")] * 200, task=LABELS, metric="micro_f1")
    assert found == 'the model predicts "a" and "b" for every dev example: it has learned nothing'
    (found,) = cautions(gold, [()] * 200, task=LABELS, metric="micro_f1")
    assert found.startswith("the model predicts no label for every")


def test_one_answer_where_most_are_right_asks_for_weights() -> None:
    (found,) = cautions(["good"] * 190 + ["bad"] * 10, ["good"] * 200)
    assert found.endswith("It is right for 95% of them; --class-weights balanced may help")
    weighted = replace(CLASSES, class_weights={"bad": 2.0})
    (found,) = cautions(["good"] * 190 + ["bad"] * 10, ["good"] * 200, task=weighted)
    assert found.endswith("It is right for 95% of them")
    task = QuestionAnsweringTask(name="q", metric="f1")
    (found,) = cautions([""] * 190 + ["a mill"] * 10, [""] * 200, task=task, metric="f1")
    assert found == (
        "the model predicts no answer for every dev example: it has learned nothing. It is right for 95% of them"
    )


def test_a_rare_class_makes_a_score_of_classes_uncertain() -> None:
    gold = ["good"] * 298 + ["bad"] * 2
    (found,) = cautions(gold, gold, metric="macro_f1")
    assert found == 'macro_f1 is less certain than its interval says: dev has 2 examples of "bad"'
    assert cautions(gold, gold) == []
    assert cautions(["good"] * 290 + ["bad"] * 10, gold, metric="macro_f1") == []


def test_a_class_of_three_quarters_is_no_majority() -> None:
    gold = ["good"] * 150 + ["bad"] * 50
    (found,) = cautions(gold, ["good"] * 200)
    assert found == 'the model predicts "good" for every dev example: it has learned nothing'
    (found,) = cautions(gold, ["good"] * 198 + ["bad"] * 2)
    assert found.endswith("for 198 of 200 dev examples: it has learned next to nothing")
    most = ["good"] * 160 + ["bad"] * 40
    (found,) = cautions(most, ["good"] * 200)
    assert "It is right for 80% of them" in found


def test_the_number_of_a_choice_is_no_answer_that_a_user_knows() -> None:
    spelled = [kind for kind in TASK_TYPES.values() if kind.spells_answers]
    assert spelled == [TextClassificationTask, MultiLabelTask, QuestionAnsweringTask]


def test_one_answer_is_right_where_all_gold_answers_are_equal() -> None:
    assert cautions(["good"] * 200, ["good"] * 200) == []


def test_thresholds_that_were_chosen_on_few_examples() -> None:
    few = [("a",), ("a", "b"), *[()] * 9] * 20
    (found,) = cautions(few, task=LABELS, metric="micro_f1")
    assert "of which 30 have it on average: other texts will have lower scores" in found
    assert cautions([("a",), ("a", "b"), ()] * 67, task=LABELS, metric="micro_f1") == []
    assert cautions(few, task=LABELS, metric="micro_f1", is_training_dev=False) == []


def test_a_score_of_zero_says_that_nothing_is_right() -> None:
    assert cautions(GOLD, (), 0.0, metric="f1")[0].startswith("f1 is 0: nothing that the model finds in dev is right")
    nothing = [("O", "O"), ("O",)] * 100
    assert cautions(nothing, (), 0.0, metric="f1")[0].startswith("f1 is 0: no dev example has anything to find")
    tags = TaggingTask(name="t", labels=("O", "B-x"))
    assert cautions(nothing, (), 0.0, task=tags, metric="f1")[0].startswith("f1 is 0: no dev example has anything")
    one = [("O", "O"), ("O", "B-x")] * 100
    assert cautions(one, (), 0.0, task=tags, metric="f1")[0].startswith("f1 is 0: nothing that the model finds")
    only_first = cautions(["good"] * 200, ["good"] * 200, 0.0, metric="f1")
    assert any(each.startswith("f1 is 0: no dev example has anything to find") for each in only_first)
    assert cautions(GOLD, (), 0.01) == cautions(GOLD, (), UNDEFINED) == []
    assert cautions(GOLD, (), 0.0, metric="matthews") == [], "a correlation of 0 has a sentence with its answers"


def test_the_last_epoch_was_the_best_of_every_seed() -> None:
    rising = (0.5, 0.4, 0.6)
    assert "--epochs 6 may be better" in cautions(GOLD, (), 0.5, rising, (0.1, 0.2, 0.3))[0]
    assert cautions(GOLD, (), 0.5, rising, (0.5, 0.7, 0.6)) == []
    assert cautions(GOLD, (), 0.5, rising, (1.0, 1.0, 1.0)) == [], "more epochs change nothing"
    assert cautions(GOLD, (), 0.5, (0.5, 1.0)) == [], "nothing is better than all"
    assert cautions(GOLD, (), 0.5, (0.5,)) == []
    assert cautions(GOLD, (), 0.5, (UNDEFINED, 0.6)) == []
    undefined = [replace(seed_result(*rising), scores={"pearson": UNDEFINED})]
    assert list_cautions(CLASSES, GOLD, (), 0.5, trained=CLASSES, seeds=undefined) == []


def test_epochs_are_judged_by_the_metric_of_the_training() -> None:
    """A model can be evaluated on a task with another metric, which its epochs do not have."""
    assert "--epochs 4 may be better" in cautions(GOLD, (), 0.5, (0.4, 0.6), metric="f1")[0]


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
    low, high = interval_by_size("accuracy", result.mean, 6)
    points = f"accuracy is uncertain: 6 others may give {100 * low:.1f} % to {100 * high:.1f} %"
    assert f"with 6 dev examples {points}" in shown
    assert any(points in each for each in result.warnings)
    assert any(points in each for each in json.loads((run / "results.json").read_text())["warnings"])
    assert f"- With 6 dev examples {points}.\n" in (run / "model" / "README.md").read_text(encoding="utf-8")
    pipeline = load(run)
    found = evaluate_model(pipeline, read_split(pipeline.task, None, "dev"), None, Progress("quiet"))
    assert any("with 6 dev examples the score is uncertain, as its" in each for each in found.warnings)
    assert "with 6 dev examples the score is uncertain" in (run / "evaluation-dev" / "report.html").read_text()
