"""Features of sentences: their document around them, and windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.task_types.small_sentences import TASK, answer_with_gold
from tests.task_types.small_sentences import task as task

from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.task_types import TagExample, TaggingTask


def test_context_is_that_of_the_document(task: TaggingTask, tokenizer: Tokenizer) -> None:
    task = replace(task, context=True, max_length=37)
    first, second, third = task.examples("train")
    assert first.around(9) == ((), ("old", "mill"))
    assert (second.around(9), second.around(2)) == ((("Seven", "rivers", "ran"), ()), (("rivers", "ran"), ()))
    assert third.around(9) == ((), ())
    (feature,) = task.encode(second, tokenizer)
    (alone,) = replace(task, context=False).encode(second, tokenizer)
    assert len(feature) > len(alone)
    assert (np.asarray(feature.labels["tags"]) != IGNORE).sum() == 2
    assert answer_with_gold(task, second, tokenizer) == second.label


@pytest.mark.parametrize("max_length", [3, 13, 512])
def test_every_word_of_a_long_sentence_is_predicted_once(tokenizer: Tokenizer, max_length: int) -> None:
    task = replace(TASK, max_length=max_length)
    count = 5000
    tags = tuple(np.random.default_rng(7).choice(["O", "B-PER", "B-LOC"], size=count).tolist())
    example = TagExample("1", tuple(f"w{n % 7}" for n in range(count)), tags)
    features = task.encode(example, tokenizer)
    assert max(map(len, features)) <= max_length
    assert sum((np.asarray(each.labels["tags"]) != IGNORE).sum() for each in features) == count
    assert answer_with_gold(task, example, tokenizer) == tags
