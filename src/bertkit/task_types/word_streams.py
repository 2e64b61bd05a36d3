"""The examples of ELMo's pre-training: every row of a batch is a stream of words, read part by part.

Letters: B rows, T words, C characters of a word.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.batch import Batch, number_of
from bertkit.data.running_text import RunningText
from bertkit.data.shards import Corpus
from bertkit.errors import data_error, usage_error
from bertkit.objectives.bilm import label_words
from bertkit.text.words import WordLevel


class StreamSource:
    """A corpus in as many streams as a batch has rows, ``seq_length`` words of each at a time, with their neighbours.

    Sentences stand between their marks, in the order of the corpus; allenai/bilm-tf shuffles them. A batch is a pure
    function of (seed, epoch, indices) as everywhere; which indices are in a batch tells ``order``. Of the labels the
    first ``targets`` words of the vocabulary are themselves, others the unknown word.
    """

    def __init__(self, corpus: Corpus, tokenizer: WordLevel, *, targets: int, seq_length: int, seed: int) -> None:
        if seq_length < 1:
            raise data_error(f"seq_length is {seq_length}; it must be 1 or more.")
        if not tokenizer.unk_id < targets <= tokenizer.vocab_size:
            raise usage_error(f"task.targets is {targets}; the vocabulary has {tokenizer.vocab_size} words.")
        self.tokenizer = tokenizer
        self.targets = targets
        self.seq_length = seq_length
        marks = (number_of(tokenizer.cls_id), number_of(tokenizer.sep_id))
        self._rows = RunningText(corpus, row_length=seq_length, seed=seed, boundary_ids=marks)

    def __len__(self) -> int:
        return len(self._rows)

    def num_batches(self, batch_size: int) -> int:
        """Parts that every stream has; what is left over at the end of the corpus is not read in this epoch."""
        return len(self) // min(batch_size, len(self))

    def order(self, batch_size: int, step: int) -> NDArray[np.int64]:
        """Part ``step`` of every stream; fewer streams than ``batch_size`` where the corpus has fewer parts."""
        streams = min(batch_size, len(self))
        return np.arange(streams) * self.num_batches(batch_size) + step

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """(B, T, 1 + C) words and characters, and their neighbours as ``labels["bilm"]`` (B, T, 2)."""
        words = np.stack([row.first for row in self._rows.segments(epoch, indices, margin=1)]).astype(np.int64)
        known = np.where(words < self.targets, words, self.tokenizer.unk_id)
        labels = np.stack([label_words(row)[1:-1] for row in known])
        numbers = words[:, 1:-1]
        spelled = self.tokenizer.spell_all(numbers.ravel()).reshape(*numbers.shape, -1)
        there = torch.ones(numbers.shape, dtype=torch.bool)
        return Batch(
            input_ids=torch.from_numpy(spelled),
            segment_ids=torch.zeros(numbers.shape, dtype=torch.long),
            attention_mask=there,
            labels={"bilm": torch.from_numpy(labels)},
        )
