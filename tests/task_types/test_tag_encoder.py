"""Features of sentences: their document around them, and windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.task_types.small_sentences import TASK, answer_with_gold
from tests.task_types.small_sentences import task as task

from bertkit.batch import IGNORE, EncoderOutput
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.objectives.crf_tagging import CrfTagging
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


def test_a_crf_finds_entities_that_lie_in_two_windows(tokenizer: Tokenizer) -> None:
    """The states tell the tag of every word, so that only what the head does not see can be wrong."""
    task = TaggingTask(name="t", labels=("O", "B-PER", "I-PER"), max_length=14, crf=True)
    word_of = {"O": "river", "B-PER": "stone", "I-PER": "mill"}
    tags = ("O", "B-PER", "I-PER", "I-PER", "I-PER") * 9
    example = TagExample("1", tuple(word_of[tag] for tag in tags), tags)
    features = task.encode(example, tokenizer)
    batch = collate(features, pad_id=tokenizer.pad_id)
    states = torch.zeros(*batch.input_ids.shape, 3)
    for place, tag in enumerate(task.labels):
        states[..., place][batch.input_ids == tokenizer.encode(f" {word_of[tag]}").ids[0]] = 30.0
    head = CrfTagging(3, task.labels).eval()
    head.classifier.bias.data.zero_()
    head.classifier.weight.data = torch.eye(3)[[0, 1, 2, 1, 2]]  # the states of B and I, that end an entity or go on
    with torch.inference_mode():
        logits = head(EncoderOutput(hidden_states=states, pooled=states[:, 0]), batch)["logits"]
    found = task.decode(example, features, [{"logits": each.numpy()} for each in logits])
    assert len(features) > 5
    assert found.label == tags


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
