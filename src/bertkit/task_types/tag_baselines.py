"""Trivial taggers that a model has to beat: one tag for all words, and the most frequent tag of each word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from bertkit.task_types.baselines import most_frequent
from bertkit.task_types.tag_reader import TagExample

MOST_FREQUENT_TAG = "most frequent tag"
TAG_OF_WORD = "most frequent tag of each word"

Tags = tuple[str, ...]


def predict_most_frequent_tag(train: Sequence[TagExample], dev: Sequence[TagExample]) -> list[Tags]:
    """The most frequent tag of train for every word, which is O in most data."""
    tag = most_frequent([tag for example in train for tag in example.label or ()])
    return [(tag,) * len(example.words) for example in dev]


def predict_tag_of_word(train: Sequence[TagExample], dev: Sequence[TagExample]) -> list[Tags]:
    """The tag that each word has most often in train; the most frequent tag of all for a word that train does not have.

    Capitals count: "Bush" is a name more often than "bush".
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        for word, tag in zip(example.words, example.label or (), strict=True):
            counts[word][tag] += 1
    unknown = most_frequent([tag for example in train for tag in example.label or ()])
    tags = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    return [tuple(tags.get(word, unknown) for word in example.words) for example in dev]
