"""From a question and its context to windows: ``[CLS] question [SEP] part of the context [SEP]``.

Letters: T tokens of a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Feature
from bertkit.contracts import Tokenizer
from bertkit.errors import usage_error
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.task_files.squad_files import SpanExample
from bertkit.task_types.windows import TokenArrays, assign_windows, window_starts

_CHARACTERS_AT_ONCE, _QUESTIONS_AT_ONCE = 500_000, 500
"""The most text that is tokenized in one call."""


@dataclass(frozen=True, kw_only=True)
class SpanEncoder:
    """Windows of ``max_length`` tokens that begin every ``stride`` tokens of the context.

    The question has at most ``max_query`` tokens, and at most half of the window. Rows are arrays that are put together
    here, and not by ``assemble``, because a context is tokenized once and cut into windows for each of its questions.
    """

    max_length: int
    stride: int
    max_query: int

    @property
    def longest_question(self) -> int:
        """The tokens of a question that are kept. The reference refuses windows without room for a context; here a
        model of 64 positions reads 32 tokens of the question.
        """
        return min(self.max_query, self.max_length // 2)

    def encode(self, example: SpanExample, tokenizer: Tokenizer) -> list[Feature]:
        """The windows of one example."""
        question, context = map(TokenArrays.of, tokenizer.encode_batch([example.question, example.context]))
        return self._windows(example, question, context, tokenizer)

    def encode_all(
        self, examples: Iterable[SpanExample], tokenizer: Tokenizer
    ) -> Iterator[tuple[SpanExample, list[Feature]]]:
        """The windows of every example; a context is tokenized once for consecutive questions about it."""
        for block in _blocks(examples):
            texts = list(dict.fromkeys(example.context for example in block))
            contexts = dict(zip(texts, map(TokenArrays.of, tokenizer.encode_batch(texts)), strict=True))
            questions = tokenizer.encode_batch([example.question for example in block])
            for example, question in zip(block, questions, strict=True):
                yield example, self._windows(example, TokenArrays.of(question), contexts[example.context], tokenizer)

    def owned(self, features: Sequence[Feature]) -> list[NDArray[np.bool_]]:
        """For each window (T,) the tokens for which it is the window with the most context."""
        before = int(np.count_nonzero(features[0].segment_ids == 0))
        length, step = self._window_size(before)
        sizes = [len(feature) - before - 1 for feature in features]
        owner = assign_windows((len(features) - 1) * step + sizes[-1], length, step)
        owned = []
        for window, (feature, size) in enumerate(zip(features, sizes, strict=True)):
            mask = np.zeros(len(feature), dtype=bool)
            mask[before : before + size] = owner[window * step : window * step + size] == window
            owned.append(mask)
        return owned

    def _window_size(self, before: int) -> tuple[int, int]:
        """Tokens of the context in a window after the question, and the distance between windows."""
        length = self.max_length - before - 1
        if length < 1:
            raise usage_error(f"max_length {self.max_length} has no room for {before} tokens of question and a text.")
        return length, min(length, self.stride)

    def _windows(
        self, example: SpanExample, question: TokenArrays, context: TokenArrays, tokenizer: Tokenizer
    ) -> list[Feature]:
        kept = question.ids[: self.longest_question]
        head = np.array([tokenizer.start_id, *kept, *tokenizer.between_ids], dtype=np.int32)
        before = len(head)
        length, step = self._window_size(before)
        target = example.target
        found = None if target is None else context.find(target.start, target.start + len(target.text))
        features = []
        for start in window_starts(len(context.ids), length, step):
            part = slice(start, start + length)
            size = len(context.ids[part])
            body = context.ids[part].reshape(-1, *head.shape[1:])
            input_ids = np.concatenate([head, body, [tokenizer.end_id]], dtype=np.int32)
            offsets = np.zeros((before + size + 1, 2), dtype=np.int32)
            offsets[before:-1] = context.offsets[part]
            label = np.zeros(2, dtype=np.int64)  # [CLS]: the answer is not in this window
            if found is not None and start <= found[0] and found[1] < start + size:
                label[:] = found[0] - start + before, found[1] - start + before
            elif target is None and (example.answers != () or not example.impossible):
                label[:] = IGNORE
            features.append(
                Feature(
                    input_ids=input_ids,
                    segment_ids=np.repeat(np.array([0, 1], dtype=np.int8), [before, size + 1]),
                    labels={SpanExtraction.label: label},
                    offsets=offsets,
                    num_truncated=0 if start else len(question.ids) - len(kept),
                )
            )
        return features


def _blocks(examples: Iterable[SpanExample]) -> Iterator[list[SpanExample]]:
    """Examples in their order, in blocks of about as much text as is tokenized in one call."""
    block: list[SpanExample] = []
    size = 0
    for example in examples:
        known = block and block[-1].context == example.context
        size += len(example.question) + (0 if known else len(example.context))
        block.append(example)
        if size > _CHARACTERS_AT_ONCE or len(block) == _QUESTIONS_AT_ONCE:
            yield block
            block, size = [], 0
    if block:
        yield block
