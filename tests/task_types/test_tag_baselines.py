from __future__ import annotations

import pytest

from bertkit.task_types import TagExample, TaggingTask, TagPrediction
from bertkit.task_types.baselines import sample_training

TASK = TaggingTask(name="names", labels=("O", "B-PER", "B-LOC", "B-ORG"))
TRAIN = [
    TagExample("1", ("Ada", "met", "Bush"), ("B-PER", "O", "B-PER")),
    TagExample("2", ("a", "bush", "in", "London"), ("O", "O", "O", "B-LOC")),
    TagExample("3", ("London", "met", "London"), ("B-ORG", "O", "B-LOC")),
]
DEV = [TagExample("4", ("Bush", "in", "Paris"), ("B-PER", "O", "B-LOC")), TagExample("5", ("London",), ("B-LOC",))]


def test_one_tag_for_all_words() -> None:
    found = TASK.baselines()["most frequent tag"](TRAIN, DEV)
    assert [each.label for each in found] == [("O", "O", "O"), ("O",)]


def test_each_word_has_its_most_frequent_tag_and_an_unknown_one_that_of_all() -> None:
    found = TASK.baselines()["most frequent tag of each word"](TRAIN, DEV)
    assert [each.label for each in found] == [("B-PER", "O", "O"), ("B-LOC",)]


def test_the_words_of_a_document_are_no_text_of_its_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without -DOCSTART- is one document: the limit on characters would be reached after few sentences."""
    words = ("a", "stone") * 99
    train = [TagExample(str(row), words[:2], ("O", "O"), document=words, start=2 * row) for row in range(99)]
    monkeypatch.setattr("bertkit.task_types.baselines._MOST_CHARACTERS", 99 * len("a stone"))
    assert sample_training(train) == train


def test_the_report_of_a_sentence_has_its_own_words() -> None:
    example = TagExample("1", ("Ada", "met"), ("O", "O"), source="Ada met", document=("Ada", "met", "Bush"))
    found = TASK.report(example, TagPrediction(("O", "O"), (1.0, 1.0), ()))
    assert (found.text, found.words) == ("Ada met", 2)


def test_the_task_scores_entities() -> None:
    scores = [TASK.score(DEV, predict(TRAIN, DEV)) for predict in TASK.baselines().values()]
    assert scores[0]["f1"] == 0
    assert [scores[1][name] for name in ("precision", "recall")] == pytest.approx([1, 2 / 3])
