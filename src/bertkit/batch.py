"""The data types of the pipeline: features, batches, encoder outputs and loss terms.

Letters: B rows, E examples that rows belong to, T tokens, C characters of a word, H hidden width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

IGNORE = -100
"""The label of a position without a label, which every loss and every count ignores."""

WORD_STARTS = "word_starts"
"""The entry of ``Batch.labels`` that is 1 on tokens that begin a word; without it every token is a word."""

Token = int | tuple[int, ...]
"""A token id; or a word as its id and then the ids of its characters, padded to a fixed number."""


def id_of(token: Token) -> int:
    """The id of a token, without the characters of a word."""
    return token if isinstance(token, int) else token[0]


IntArray = NDArray[np.integer]

Label = int | float | NDArray[np.integer] | NDArray[np.floating]
"""The label of a feature: one number, or an array of length T or of a fixed length."""

Outputs = dict[str, Tensor]
"""The outputs of a head, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One model input: ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``, all arrays of length T.

    ``offsets`` (T, 2) are the (start, end) characters of each token in its own text, (0, 0) for special tokens; they
    are for decoding and are not collated. ``num_truncated`` is how many tokens of the text were left out.

    With ``lengths`` (K,) a feature has K rows, which are the choices of a question or a pair in both orders. Its arrays
    are K x T, and the first ``lengths[k]`` tokens of row k are real. If tokens are words with characters, ``input_ids``
    has one more axis, for the characters.
    """

    input_ids: IntArray
    segment_ids: IntArray
    labels: Mapping[str, Label] = field(default_factory=dict)
    offsets: IntArray | None = None
    num_truncated: int = 0
    lengths: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.segment_ids.shape[-1])

    @property
    def num_tokens(self) -> int:
        """The tokens of all its rows, without padding."""
        return len(self) if self.lengths is None else int(self.lengths.sum())

    @property
    def num_rows(self) -> int:
        """The rows that it has in a batch."""
        return 1 if self.lengths is None else len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Collated features. ``attention_mask`` is True on real tokens; padding is at the end of a row.

    ``input_ids`` (B, T) are token ids. For an encoder that reads characters they are (B, T, C), C numbers per word.

    Some features have several rows: the choices of a question, or the two orders of a pair. ``rows_per_feature`` (E,)
    then counts those of each of the E features, to which the labels belong; without it every row is a feature.

    ``host`` is the batch before it was moved to a device. Code that needs a count or a length uses ``on_host``: reading
    it from the device would wait for all work that is queued there.
    """

    input_ids: Int[Tensor, "B T *C"]
    segment_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"]
    labels: Mapping[str, Tensor]
    rows_per_feature: Int[Tensor, " E"] | None = None
    host: Batch | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def on_host(self) -> Batch:
        """The same batch in host memory."""
        return self if self.host is None else self.host

    @property
    def num_tokens(self) -> int:
        """The number of real tokens, without padding."""
        return int(self.on_host.attention_mask.sum())

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        if device == self.input_ids.device:
            return self
        return replace(self._map(lambda tensor: tensor.to(device, non_blocking=True)), host=self.on_host)

    def pinned(self) -> Batch:
        """The same batch in pinned memory, from which a GPU copies asynchronously."""
        return self._map(Tensor.pin_memory)

    def with_labels(self, **labels: Tensor) -> Batch:
        """The same batch with more labels; it must be on the host."""
        assert self.host is None
        return replace(self, labels={**self.labels, **labels})

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return replace(
            self,
            input_ids=change(self.input_ids),
            segment_ids=change(self.segment_ids),
            attention_mask=change(self.attention_mask),
            labels={name: change(label) for name, label in self.labels.items()},
            rows_per_feature=None if self.rows_per_feature is None else change(self.rows_per_feature),
        )


@dataclass(frozen=True, slots=True, eq=False)
class EncoderOutput:
    """What an encoder computes. ``layers`` are the embeddings and the output of every layer, if they were requested.

    ``head`` is the encoder's own layer before every output layer, if it has one (see ``PredictionLayer``). ``pooled``
    has passed through it already. ``embeddings`` are the states before the first layer of a Transformer; other networks
    have none of this width.
    """

    hidden_states: Float[Tensor, "B T H"]
    pooled: Float[Tensor, "B H"]
    layers: tuple[Float[Tensor, "B T H"], ...] = ()
    head: Callable[[Tensor], Tensor] | None = None
    embeddings: Float[Tensor, "B T H"] | None = None

    def apply_head(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Hidden states as an output layer for tokens reads them: through the encoder's ``head``, or as they are."""
        return states if self.head is None else self.head(states)


@dataclass(frozen=True, slots=True, eq=False)
class LossTerm:
    """A loss summed over ``count`` labels; ``weight`` multiplies its mean in the total loss.

    Means are taken once per step over all of its micro-batches and processes: a mean of means would weight masked
    tokens wrongly, because micro-batches have different numbers of them.
    """

    sum: Tensor
    count: int
    weight: float = 1.0


LossTerms = dict[str, LossTerm]
"""Loss terms, or metrics, by name."""
