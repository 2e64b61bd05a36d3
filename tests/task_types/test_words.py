"""Every shape of task over words with characters: a token is a row of numbers, and padding is zeros in all of it."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.batch import Feature
from bertkit.data.features import collate
from bertkit.task_files.squad_files import GoldAnswer
from bertkit.task_types import (
    ChoiceExample,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    SpanExample,
    TagExample,
    TaggingTask,
    TextClassificationTask,
    TextExample,
)
from bertkit.text.words import WordLevel, train

WIDTH = 1 + 9


@pytest.fixture
def words() -> WordLevel:
    return train(["the old mill ran past seven rivers"], word_length=WIDTH - 1)


def read_back(words: WordLevel, feature: Feature) -> list[str]:
    """The words of a feature, from their numbers."""
    return [words.id_to_token(row[0]) for row in feature.input_ids.tolist()]


def check_padding(words: WordLevel, features: list[Feature]) -> None:
    """A batch has the features, and zeros in every column after them."""
    batch = collate(features, pad_id=words.pad_id)
    assert batch.input_ids.shape == (*batch.attention_mask.shape, WIDTH)
    assert not batch.input_ids[~batch.attention_mask].any()
    assert batch.input_ids[batch.attention_mask].any(dim=1).all()


@pytest.mark.parametrize("stride", [0, 2])
def test_texts(words: WordLevel, stride: int) -> None:
    task = TextClassificationTask(
        name="t", metric="accuracy", labels=("no", "yes"), pair=True, max_length=9, stride=stride
    )
    features = task.encode(TextExample("1", "seven rivers", "ran past the old mill"), words)
    assert read_back(words, features[0])[:4] == ["<S>", "seven", "rivers", "</S>"]
    empty = task.encode(TextExample("2", "", ""), words)
    assert read_back(words, empty[0]) == ["<S>", "</S>", "</S>"]
    check_padding(words, features + empty)


def test_choices(words: WordLevel) -> None:
    example = ChoiceExample("1", "the old mill", ("ran", "ran past seven rivers"))
    (feature,) = MultipleChoiceTask(name="t").encode(example, words)
    assert feature.input_ids.shape == (2, 10, WIDTH)
    assert not feature.input_ids[0, 7:].any()
    assert feature.input_ids.nbytes == 4 * 2 * 10 * WIDTH, "a word has many numbers, and all examples are in memory"
    check_padding(words, [feature])


def test_spans_in_windows(words: WordLevel) -> None:
    task = QuestionAnsweringTask(name="t", max_length=8, stride=2)
    answer = (GoldAnswer("seven rivers", 22),)
    example = SpanExample("1", "mill?", "the old mill ran past seven rivers", answer)
    features = task.encode(example, words)
    assert [len(feature) for feature in features] == [8, 8, 8]
    assert read_back(words, features[-1]) == ["<S>", "mill", "<UNK>", "</S>", "past", "seven", "rivers", "</S>"]
    start, end = np.asarray(features[-1].labels["span"])
    assert read_back(words, features[-1])[start : end + 1] == ["seven", "rivers"]
    check_padding(words, features)


def test_spans_without_words(words: WordLevel) -> None:
    (feature,) = QuestionAnsweringTask(name="t").encode(SpanExample("1", "", ""), words)
    assert read_back(words, feature) == ["<S>", "</S>", "</S>"]
    assert feature.input_ids.shape == (3, WIDTH)


@pytest.mark.parametrize("max_length", [5, 13])
def test_tags(words: WordLevel, max_length: int) -> None:
    task = TaggingTask(name="t", labels=("O", "B-X"), max_length=max_length)
    sentence = ("the", "fjord", "ran", "past")
    example = TagExample("1", sentence, ("O", "B-X", "O", "O"), document=(*sentence, "seven", "rivers"))
    features = task.encode(example, words)
    read = [word for feature in features for word in read_back(words, feature)]
    assert {"the", "<UNK>", "ran", "past"} < set(read)
    assert all(feature.segment_ids.shape == (len(feature),) for feature in features)
    labels_of_windows = [np.asarray(feature.labels["tags"]).tolist() for feature in features]
    assert sorted(label for labels in labels_of_windows for label in labels if label >= 0) == [0, 0, 0, 1]
    check_padding(words, [*features, *task.encode(TagExample("2", ()), words)])
