from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from bertkit.config.records import to_plain
from bertkit.errors import BertkitError
from bertkit.evaluation.compare import Comparison, compare_predictions, require_comparable
from bertkit.task_types import MultiLabelTask, Prediction, RegressionTask, TextClassificationTask, TextExample

MOODS = TextClassificationTask(name="moods", metric="accuracy", also=("macro_f1",), labels=("sad", "glad"))
MARKS = RegressionTask(name="marks", metric="pearson")
NAMES = ("runs/a", "runs/b")


def compare_classes(only_first: int, only_second: int, both: int) -> Comparison:
    gold = ["glad"] * (only_first + only_second + both)
    first = ["glad"] * only_first + ["sad"] * only_second + ["glad"] * both
    second = ["sad"] * only_first + ["glad"] * only_second + ["glad"] * both
    examples = [TextExample(str(place), f"text {place}", None, label) for place, label in enumerate(gold)]
    answers = [[Prediction(label, {label: 0.7}) for label in side] for side in (first, second)]
    return compare_predictions(MOODS, "dev", examples, answers[0], answers[1], NAMES)


def test_a_large_difference_is_significant() -> None:
    found = compare_classes(7, 37, 99)
    accuracy = found.scores["accuracy"]
    assert accuracy.difference.value == pytest.approx(30 / 143)
    assert accuracy.difference.value == accuracy.second.value - accuracy.first.value
    assert 0 < accuracy.difference.low < accuracy.difference.high < 0.4
    assert accuracy.p < 0.01
    assert found.mcnemar is not None and (found.mcnemar.only_first, found.mcnemar.only_second) == (7, 37)
    assert found.mcnemar.p < 0.001
    assert found.sentence().startswith("runs/b is better than runs/a, by more than chance: accuracy +0.2098")
    assert repr(found).startswith("Comparison(runs/b against runs/a: accuracy +0.2098, p = 0.")
    first_is_better = compare_classes(37, 7, 99)
    assert first_is_better.scores["accuracy"].difference.value < 0
    pattern = r"runs/a is better than runs/b, by more than chance: accuracy \+0\.2098 \(\+0\.\d+ to \+0\.\d+, p = 0\."
    assert re.match(pattern, first_is_better.sentence())


@pytest.mark.parametrize(("differing", "least"), [(1, 1.0), (3, 0.25), (5, 0.0625)])
def test_few_different_answers_are_never_more_than_chance(differing: int, least: float) -> None:
    found = compare_classes(0, differing, 0)
    assert found.scores["accuracy"].p == least
    assert found.sentence().startswith("No difference larger than chance")


def test_accuracy_differs_by_no_more_than_the_exact_test_says() -> None:
    """The resamples of 9 to 2 of 872 are on one side in 97 %, and 9 of 11 throws of a coin are so often alike."""
    found = compare_classes(2, 9, 861)
    assert found.mcnemar is not None and found.mcnemar.p == pytest.approx(0.0654, abs=1e-4)
    assert found.scores["accuracy"].p == found.mcnemar.p
    assert found.scores["macro_f1"].p < found.mcnemar.p
    assert found.sentence().startswith("No difference larger than chance")


def test_other_probabilities_are_no_other_answers() -> None:
    gold = ["glad"] * 40
    examples = [TextExample(str(place), f"text {place}", None, label) for place, label in enumerate(gold)]
    first = [Prediction("glad" if place > 5 else "sad", {"glad": 0.6}) for place in range(40)]
    second = [Prediction("glad" if place > 1 else "sad", {"glad": 0.7}) for place in range(40)]
    found = compare_predictions(MOODS, "dev", examples, first, second, NAMES)
    assert found.scores["accuracy"].p >= 2 * 0.5**4, "four answers differ"


def test_a_small_difference_is_not_significant() -> None:
    found = compare_classes(6, 7, 99)
    assert found.scores["accuracy"].p > 0.05
    assert found.sentence().startswith("No difference larger than chance between runs/a and runs/b: accuracy +0.0089")


def test_equal_predictions_have_p_1() -> None:
    found = compare_classes(0, 0, 13)
    assert found.scores["accuracy"].p == 1.0 and found.mcnemar is not None and found.mcnemar.p == 1.0
    assert found.disagreements == []


def test_a_difference_from_an_undefined_score_is_undefined() -> None:
    examples = [TextExample(str(place), "text", None, float(place)) for place in range(7)]
    constant = [Prediction(2.5)] * 7
    answers = [Prediction(float(place % 3)) for place in range(7)]
    found = compare_predictions(MARKS, "dev", examples, constant, answers, NAMES)
    assert found.sentence().startswith(
        "runs/a and runs/b cannot be compared: pearson is undefined for runs/a: all predictions"
    )
    assert to_plain(found)["scores"]["pearson"]["p"] is None


def test_of_an_error_the_smaller_is_better() -> None:
    task = replace(MARKS, metric="mean_absolute_error")
    examples = [TextExample(str(place), "text", None, float(place)) for place in range(37)]
    near, far = ([Prediction(place + error) for place in range(37)] for error in (0.25, 0.75))
    expected = "is better than {}, by more than chance: mean_absolute_error -0.5000 (-0.5000 to -0.5000, p = 0.0"
    found = compare_predictions(task, "dev", examples, near, far, NAMES)
    assert found.sentence().startswith(f"runs/a {expected.format('runs/b')}")
    assert found.scores["mean_absolute_error"].difference.value == 0.5
    swapped = compare_predictions(task, "dev", examples, far, near, NAMES)
    assert swapped.sentence().startswith(f"runs/b {expected.format('runs/a')}")


def test_paired_resamples_narrow_the_interval_of_a_difference() -> None:
    """Two models that mostly agree differ by less chance than their own scores have."""
    draw = random.Random(13)
    gold = [draw.gauss(0, 1) for _ in range(97)]
    answers = [number + draw.gauss(0, 1) for number in gold]
    examples = [TextExample(str(place), "text", None, number) for place, number in enumerate(gold)]
    first = [Prediction(number) for number in answers]
    second = [Prediction(number + draw.gauss(0, 0.05)) for number in answers]
    found = compare_predictions(MARKS, "dev", examples, first, second, NAMES)
    score = found.scores["pearson"]
    assert score.difference.high - score.difference.low < (score.first.high - score.first.low) / 3
    assert found.mcnemar is None


def test_disagreements_are_the_examples_with_different_predictions() -> None:
    found = compare_classes(1, 2, 99)
    assert {(each.id, each.first, each.second) for each in found.disagreements} == {
        ("0", "glad", "sad"),
        ("1", "sad", "glad"),
        ("2", "sad", "glad"),
    }
    assert len(compare_classes(37, 0, 0).disagreements) == 10


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            replace(MOODS, labels=("sad", "gay")),
            r"differ in labels: runs/a \(moods\) has glad, sad, runs/b \(moods\) has",
        ),
        (MARKS, r"the kind of answer: .* runs/b \(marks\) has regression"),
        (replace(MOODS, pair=True), "texts per example: .* has one, .* has two"),
        (
            MultiLabelTask(name="topics", labels=("sad", "glad")),
            "the kind of answer: .* has text classification, .* has multi label",
        ),
    ],
)
def test_models_of_different_tasks_are_not_compared(other: TextClassificationTask, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        require_comparable(MOODS, other, NAMES)
    assert "\n" not in str(caught.value)
    require_comparable(MOODS, replace(MOODS, labels=("glad", "sad"), name="mine"), NAMES)
