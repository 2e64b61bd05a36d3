"""The special tokens before, between and after the texts are those of the tokenizer, for every type of task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bertkit.batch import Feature
from bertkit.task_files.squad_files import SpanExample
from bertkit.task_types import (
    ChoiceExample,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    TagExample,
    TaggingTask,
    TextClassificationTask,
    TextExample,
)
from bertkit.text import bpe, byte_bpe, wordpiece

TEXTS = ["the old mill ran", "seven wide rivers met the mill"] * 3

TOKENIZERS: dict[str, wordpiece.WordPiece | byte_bpe.ByteLevelBPE | bpe.BPE] = {
    "bert": wordpiece.train(TEXTS, vocab_size=99),
    "roberta": byte_bpe.train(TEXTS, vocab_size=299),
    "gpt": bpe.train(TEXTS, vocab_size=99),
}

MARKS = {
    "bert": ("[CLS]", ["[SEP]"], "[SEP]"),
    "roberta": ("<s>", ["</s>", "</s>"], "</s>"),
    "gpt": ("_start_", ["_delimiter_"], "_classify_"),
}
"""Radford et al. 2018, section 3.3; RoBERTa's are fairseq's."""


@pytest.fixture(params=list(TOKENIZERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def lay_out(name: str, *texts: Sequence[int]) -> list[int]:
    """The row of one text or of two, by hand."""
    tokenizer = TOKENIZERS[name]
    start, between, end = MARKS[name]
    parts = [*texts[0]] if len(texts) == 1 else [*texts[0], *tokenizer.tokens_to_ids(between), *texts[1]]
    return [*tokenizer.tokens_to_ids([start]), *parts, *tokenizer.tokens_to_ids([end])]


def cut(name: str, text: str) -> list[int]:
    return TOKENIZERS[name].encode(text).ids


def rows(feature: Feature) -> list[list[int]]:
    assert feature.lengths is not None
    return [row[:size].tolist() for row, size in zip(feature.input_ids, feature.lengths, strict=True)]


def test_one_text_and_two(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    one = TextClassificationTask(name="one", metric="accuracy", labels=("a", "b"))
    (feature,) = one.encode(TextExample("1", "the old mill"), tokenizer)
    assert feature.input_ids.tolist() == lay_out(name, cut(name, "the old mill"))
    two = TextClassificationTask(name="two", metric="accuracy", labels=("a", "b"), pair=True)
    (feature,) = two.encode(TextExample("1", "the mill", "wide rivers"), tokenizer)
    assert feature.input_ids.tolist() == lay_out(name, cut(name, "the mill"), cut(name, "wide rivers"))


def test_choices_are_a_row_each(name: str) -> None:
    task = MultipleChoiceTask(name="choices", choices=("A", "B"))
    (feature,) = task.encode(ChoiceExample("1", "the mill", ("ran", "met wide rivers"), "it"), TOKENIZERS[name])
    prompt = cut(name, "the mill")
    assert rows(feature) == [lay_out(name, prompt, cut(name, end)) for end in ("it ran", "it met wide rivers")]


def test_windows_of_a_context(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    question, context = cut(name, "the mill"), cut(name, "seven wide rivers met the mill")
    fixed = len(question) + len(MARKS[name][1]) + 2
    task = QuestionAnsweringTask(name="span", max_length=fixed + 3, stride=2)
    features = task.encode(SpanExample("1", "the mill", "seven wide rivers met the mill"), tokenizer)
    starts = range(0, len(context) - 1, 2)
    assert [each.input_ids.tolist() for each in features] == [
        lay_out(name, question, context[start : start + 3]) for start in starts
    ]
    before = len(lay_out(name, question, [])) - 1
    for feature in features:
        assert np.flatnonzero(feature.segment_ids)[0] == before


def test_words_with_tags_and_what_is_around_them(name: str) -> None:
    words = ("wide", "rivers")
    task = TaggingTask(name="tags", labels=("O", "B-x"), context=True)
    example = TagExample("1", words, ("O", "B-x"), document=("seven", *words, "met"), start=1)
    (feature,) = task.encode(example, TOKENIZERS[name])
    tokens = [token for word in ("seven", *words, "met") for token in cut(name, f" {word}")]
    assert feature.input_ids.tolist() == lay_out(name, tokens)
