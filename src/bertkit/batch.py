"""The data types of the pipeline: features, batches, encoder outputs and loss terms.

Letters: B examples, T tokens, C characters of a word, H hidden width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

IGNORE = -100
"""Label of a position that has no label; every loss and every count passes over it."""


Token = int | tuple[int, ...]
"""A piece by its number, or a word that is also read as characters: its number and then theirs, always equally many."""


def number_of(token: Token) -> int:
    """The number of a piece, or of a word that also has characters."""
    return token if isinstance(token, int) else token[0]


Label = int | float | NDArray[Any]


Outputs = dict[str, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One model input: ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``, all arrays of length T.

    ``labels`` holds numbers, or arrays of length T or of one length for all. ``offsets`` (T, 2) are the characters of
    each token in its own text, (0, 0) for special tokens; they serve decoding and are never collated. ``cut`` counts
    the tokens of the text that found no room.

    With ``lengths`` it has K rows: choices, one of which is to be told, or a pair in both orders. Its arrays are K x T,
    and so many tokens of each row are real. Where tokens are words that are read as characters, ``input_ids`` has them
    in one more axis.
    """

    input_ids: NDArray[np.integer[Any]]
    segment_ids: NDArray[np.integer[Any]]
    labels: Mapping[str, Label] = field(default_factory=dict)
    offsets: NDArray[np.integer[Any]] | None = None
    num_truncated: int = 0
    lengths: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.segment_ids.shape[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Collated features. ``attention_mask`` is True on real tokens; padding comes last in a row.

    Tokens are numbers, or words of C characters each for an encoder that reads those.

    Choices, and the orders of a pair, lie below each other, so that an encoder sees rows like any others: ``choices``
    says how many rows each of the E features has, and labels are those of features. Without it every row is a feature.

    ``host`` is what it was before it went to another device. Whoever needs a number of it to go on, a count or a
    shape, reads ``on_host``: to read it from the device is to wait until all that was asked of it is done.
    """

    input_ids: Int[Tensor, "B T *C"]
    segment_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"]
    labels: Mapping[str, Tensor]
    choices: Int[Tensor, E] | None = None
    host: Batch | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def on_host(self) -> Batch:
        """The same batch where its numbers are at hand."""
        return self if self.host is None else self.host

    @property
    def num_tokens(self) -> int:
        """Real tokens, padding not counted."""
        return int(self.on_host.attention_mask.sum())

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        if device == self.input_ids.device:
            return self
        return replace(self._map(lambda tensor: tensor.to(device, non_blocking=True)), host=self.on_host)

    def pinned(self) -> Batch:
        """The same batch in memory that a GPU copies from by itself, while the processor goes on."""
        return self._map(Tensor.pin_memory)

    def with_labels(self, **labels: Tensor) -> Batch:
        """The same batch with more labels, while it is on the host."""
        assert self.host is None
        return replace(self, labels={**self.labels, **labels})

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return replace(
            self,
            input_ids=change(self.input_ids),
            segment_ids=change(self.segment_ids),
            attention_mask=change(self.attention_mask),
            labels={name: change(label) for name, label in self.labels.items()},
            choices=None if self.choices is None else change(self.choices),
        )


@dataclass(frozen=True, slots=True, eq=False)
class EncoderOutput:
    """``layers`` are the embeddings and then every block's output, the last being ``hidden_states``."""

    hidden_states: Float[Tensor, "B T H"]
    pooled: Float[Tensor, "B H"]
    layers: tuple[Float[Tensor, "B T H"], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LossTerm:
    """A loss as a sum over ``count`` labels; beside other terms its mean counts ``weight`` times.

    Means are taken once a step, over everything in that step: a mean of micro-batch means weights
    masked tokens wrongly.
    """

    sum: Tensor
    count: int
    weight: float = 1.0


LossTerms = dict[str, LossTerm]
