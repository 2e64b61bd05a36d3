"""What every task whose examples are in files has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.ranges import check_ranges
from bertkit.task_types import (
    FileTask,
    MultiLabelTask,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    RegressionTask,
    SimilarityTask,
    TaggingTask,
    TextClassificationTask,
    same_answers,
    type_name,
)
from bertkit.task_types.class_weights import Weightable
from bertkit.task_types.records import TASK_TYPES
from bertkit.tasks.glue import sst2

CLASSES = TextClassificationTask(name="moods", metric="accuracy", labels=("sad", "glad"))
TAGS = TaggingTask(name="names", labels=("O", "B-X", "I-X"))


@pytest.mark.parametrize("task", [CLASSES, TAGS, QuestionAnsweringTask(name="q"), MultipleChoiceTask(name="c")])
@pytest.mark.parametrize("max_length", [-1, 0, 1, 2])
def test_a_length_without_room_for_a_token_is_refused(task: TextClassificationTask, max_length: int) -> None:
    with pytest.raises(BertkitError, match=f"max_length is {max_length}; it must be from 3 to") as caught:
        replace(task, max_length=max_length)
    assert caught.value.exit_code == WRONG_USAGE


@pytest.mark.parametrize("kind", TASK_TYPES.values(), ids=TASK_TYPES)
def test_a_score_that_the_task_does_not_have_is_refused_at_once(kind: type[FileTask]) -> None:
    with pytest.raises(BertkitError, match=r"metric is f2; the scores of n are "):
        kind(name="n", metric="f2", labels=("O", "B-X"))


def test_every_further_score_is_one_of_the_task() -> None:
    with pytest.raises(BertkitError, match=r'also is acuracy; the scores of moods are .*\. Did you mean "accuracy"'):
        replace(CLASSES, also=("f1", "acuracy"))


def test_every_type_has_its_pipeline_tag() -> None:
    assert {name: kind.pipeline_tag for name, kind in TASK_TYPES.items()} == {
        "text_classification": "text-classification",
        "regression": "text-classification",
        "multi_label": "text-classification",
        "question_answering": "question-answering",
        "multiple_choice": "multiple-choice",
        "tagging": "token-classification",
        "similarity": "sentence-similarity",
    }


class Ranking(RegressionTask):
    """A class outside bertkit."""


def test_the_type_of_a_class_outside_bertkit_is_a_dotted_path() -> None:
    assert type_name(TaggingTask) == "tagging"
    assert type_name(Ranking) == f"{__name__}:Ranking"


def test_tasks_have_the_same_answers_if_their_type_and_labels_are_the_same() -> None:
    assert same_answers(CLASSES, replace(CLASSES, name="other", pair=True))
    assert not same_answers(CLASSES, replace(CLASSES, labels=("glad", "sad")))
    assert not same_answers(CLASSES, MultiLabelTask(name="moods", labels=("sad", "glad")))


def test_without_files_of_its_own_a_task_guesses_the_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,review,label\n1,so fine,glad\n2,so dull,sad\n")
    task = replace(CLASSES, heldout=0.1).with_files(dev=str(tmp_path / "t.csv"))
    assert task.heldout == 0
    assert [(each.id, each.first, each.label) for each in task.examples("dev")] == [
        ("1", "so fine", "glad"),
        ("2", "so dull", "sad"),
    ]


def test_a_task_without_thresholds_keeps_its_predictions() -> None:
    assert TAGS.calibrate([], []) == (TAGS, [])
    assert TAGS.score_parts([], []) == []


def test_only_classes_can_be_weighted() -> None:
    assert not isinstance(TAGS, Weightable)
    assert isinstance(sst2, Weightable)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (SimilarityTask, {"pooling": "sum"}, "pooling is sum; it must be cls or mean or max"),
        (SimilarityTask, {"training": "pair"}, "training is pair; it must be scores or pairs"),
        (MultipleChoiceTask, {"spelling": "nubmer"}, "spelling is nubmer; it must be number or number from 1 or"),
        (QuestionAnsweringTask, {"rules": "V2"}, "rules is V2; it must be v1 or v2 or korquad"),
    ],
)
def test_a_setting_that_is_none_of_the_choices_is_refused(
    kind: Callable[..., FileTask], settings: dict[str, Any], message: str
) -> None:
    task = kind(name="task")
    for name, value in settings.items():  # the constructor is typed, and tests check types before it runs
        object.__setattr__(task, name, value)
    with pytest.raises(BertkitError, match=message):
        check_ranges(task)
