"""From a sentence to features: ``[CLS] sentence [SEP]``, with its document around it, or in windows.

Letters: T tokens of a feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, WORD_STARTS, Feature, Token
from bertkit.contracts import Tokenizer, Tokens
from bertkit.data.features import assemble
from bertkit.task_types.tag_reader import TagExample
from bertkit.task_types.windows import assign_windows, window_starts


@dataclass(frozen=True, kw_only=True)
class TagEncoder:
    """Features of at most ``max_length`` tokens with the index of each tag in ``labels``.

    With ``context`` a sentence that leaves room has words of its document around it. ``target`` is the name of the
    label that the head reads. With ``marks_word_starts`` a feature also says which tokens begin a word, which heads
    need that see one state per word.
    """

    labels: tuple[str, ...]
    max_length: int
    context: bool
    target: str
    marks_word_starts: bool

    def encode(self, example: TagExample, tokenizer: Tokenizer) -> list[Feature]:
        """One feature, or windows of a long sentence; the offsets of tokens that do not begin a word are (0, 0)."""
        words = tokenize_words(example.words, tokenizer)
        ids = [token for word in words for token in word]
        offsets = np.zeros((len(ids), 2), dtype=np.int64)
        labels = np.full(len(ids), IGNORE, dtype=np.int64)
        start = 0
        for number, word in enumerate(words):
            if word:
                offsets[start] = example.places[number]
                labels[start] = IGNORE if example.label is None else self.labels.index(example.label[number])
            start += len(word)
        length = self.max_length - 2
        if len(ids) <= length:
            around = _tokens_around(example, length - len(ids), tokenizer) if self.context else ()
            return [self._feature(tokenizer, ids, offsets, labels, offsets[:, 1] > 0, *around)]
        step = max(1, length // 2)
        owner = assign_windows(len(ids), length, step)
        features = []
        for window, begin in enumerate(window_starts(len(ids), length, step)):
            part = slice(begin, begin + length)
            owned = owner[part] == window
            own_offsets, own_labels = np.where(owned[:, None], offsets[part], 0), np.where(owned, labels[part], IGNORE)
            # The head sees all words of the window, or it would begin and end its sequence in the middle of an entity.
            starts = offsets[part, 1] > 0
            features.append(self._feature(tokenizer, ids[part], own_offsets, own_labels, starts))
        return features

    def _feature(
        self,
        tokenizer: Tokenizer,
        ids: Sequence[Token],
        offsets: NDArray[np.int64],
        labels: NDArray[np.int64],
        starts: NDArray[np.bool_],
        before: Sequence[Token] = (),
        after: Sequence[Token] = (),
    ) -> Feature:
        around = (len(before), len(after))
        tokens = Tokens([*before, *ids, *after], np.pad(offsets, (around, (0, 0))).tolist())
        padding = (len(before) + 1, len(after) + 1)
        targets = {self.target: np.pad(labels, padding, constant_values=IGNORE)}
        if self.marks_word_starts:
            targets[WORD_STARTS] = np.pad(starts.astype(np.int64), padding)
        return assemble(tokenizer, tokens, max_length=self.max_length, labels=targets)


def tokenize_words(words: Iterable[str], tokenizer: Tokenizer) -> list[list[Token]]:
    """The tokens of each word with a space before it: byte-level BPE takes a word without one for a word's end."""
    return [tokens.ids for tokens in tokenizer.encode_batch([f" {word}" for word in words])]


def _tokens_around(example: TagExample, length: int, tokenizer: Tokenizer) -> tuple[list[Token], list[Token]]:
    """Tokens before and after the sentence, equally many where ``length`` does not suffice for all."""
    before, after = (
        [token for word in tokenize_words(words, tokenizer) for token in word] for words in example.around(length)
    )
    left = min(len(before), max(length // 2, length - len(after)))
    return before[len(before) - left :], after[: length - left]
