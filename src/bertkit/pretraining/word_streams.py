"""The examples of ELMo's pre-training: every row of a batch is a stream of words, divided into parts.

Letters: B rows, T words, C characters of a word.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.batch import Batch, id_of
from bertkit.data.running_text import RunningText
from bertkit.data.shards import Corpus
from bertkit.errors import usage_error
from bertkit.objectives.bilm import label_words
from bertkit.text.words import WordLevel


class StreamSource:
    """A corpus, divided into as many streams as a batch has rows; a batch has ``seq_length`` words of each, with their
    neighbours.

    Sentences have their boundary tokens and are in the order of the corpus; allenai/bilm-tf shuffles them. A batch is a
    pure function of (seed, epoch, indices); ``order`` says which indices are in a batch. In labels only the first
    ``targets`` words of the vocabulary occur; all others are the unknown word.
    """

    def __init__(self, corpus: Corpus, tokenizer: WordLevel, *, targets: int, seq_length: int, seed: int) -> None:
        if not tokenizer.unk_id < targets <= tokenizer.vocab_size:
            raise usage_error(f"task.targets is {targets}; the vocabulary has {tokenizer.vocab_size} words.")
        self.tokenizer = tokenizer
        self.targets = targets
        self.seq_length = seq_length
        marks = (id_of(tokenizer.cls_id), id_of(tokenizer.sep_id))
        self._rows = RunningText(corpus, row_length=seq_length, seed=seed, boundary_ids=marks)

    def __len__(self) -> int:
        return len(self._rows)

    def num_batches(self, batch_size: int) -> int:
        """The number of parts of every stream; a remainder at the end of the corpus is not used in this epoch."""
        return len(self) // min(batch_size, len(self))

    def order(self, batch_size: int, step: int) -> NDArray[np.int64]:
        """Part ``step`` of every stream; there are fewer streams than ``batch_size`` if the corpus has fewer parts."""
        streams = min(batch_size, len(self))
        return np.arange(streams) * self.num_batches(batch_size) + step

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """Words with their characters, (B, T, 1 + C), and their neighbours as ``labels["bilm"]`` (B, T, 2)."""
        words = np.stack([row.first for row in self._rows.segments(epoch, indices, margin=1)]).astype(np.int64)
        known = np.where(words < self.targets, words, self.tokenizer.unk_id)
        labels = np.stack([label_words(row)[1:-1] for row in known])
        ids = words[:, 1:-1]
        characters = self.tokenizer.spell_all(ids.ravel()).reshape(*ids.shape, -1)
        real = torch.ones(ids.shape, dtype=torch.bool)
        return Batch(
            input_ids=torch.from_numpy(characters),
            segment_ids=torch.zeros(ids.shape, dtype=torch.long),
            attention_mask=real,
            labels={"bilm": torch.from_numpy(labels)},
        )
