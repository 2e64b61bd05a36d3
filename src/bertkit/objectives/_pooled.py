"""What heads share that read one vector per row.

Letters: B rows, T tokens, H hidden width, E features, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bertkit.batch import Batch, EncoderOutput, Outputs
from bertkit.contracts import Objective
from bertkit.nn.dropout import HEAD_DROPOUT, Dropout
from bertkit.nn.init import initialize
from bertkit.nn.text_pooling import PairPooling, Pooling, TextPooling


class PooledObjective(Objective):
    """Dropout on one vector per row; a subclass adds the linear layer that reads it.

    The vector is the encoder's pooled state with the pooling ``cls``, else that of ``TextPooling``, or with
    ``pair_head`` that of ``PairPooling``, which compares the two texts of a row.
    """

    def __init__(self, hidden_size: int, *, pooling: Pooling = "cls", pair_head: bool = False) -> None:
        super().__init__()
        kind = PairPooling if pair_head else TextPooling
        self.pooling = None if pooling == "cls" else kind(hidden_size, pooling)
        self.reads_pooled = self.in_huggingface = self.pooling is None
        self.dropout = Dropout(HEAD_DROPOUT)

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """No position where only the pooled state is needed, else all."""
        return torch.zeros_like(batch.attention_mask) if self.pooling is None else None

    def pool_rows(self, states: EncoderOutput, batch: Batch) -> Float[Tensor, "B H"]:
        """The vector of every row."""
        vectors: Tensor = self.dropout(self._pool(states, batch))
        return vectors

    def pool_features(self, states: EncoderOutput, batch: Batch) -> Float[Tensor, "E H"]:
        """The vector of every feature; if it is a pair in both orders, the sum of the vectors of both rows.

        GPT does so for pairs that have no natural order (Radford et al. 2018, section 3.3).
        """
        vectors, rows = self._pool(states, batch), batch.on_host.rows_per_feature
        if rows is not None:
            owners = torch.repeat_interleave(rows).to(vectors.device, non_blocking=True)
            vectors = vectors.new_zeros(len(rows), vectors.shape[1]).index_add(0, owners, vectors)
        dropped: Tensor = self.dropout(vectors)
        return dropped

    def _pool(self, states: EncoderOutput, batch: Batch) -> Float[Tensor, "B H"]:
        if self.pooling is None:
            return states.pooled
        hidden = states.hidden_states
        embeddings = hidden if states.embeddings is None else states.embeddings
        vectors: Tensor = self.pooling(hidden, embeddings, batch.attention_mask, batch.segment_ids)
        return vectors


class WeightedClassifier(PooledObjective):
    """One linear layer with an output for each class; ``weights`` (C) are those of the classes in the loss."""

    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier.weight": ("classifier.weight",),
        "classifier.bias": ("classifier.bias",),
    }

    def __init__(
        self,
        hidden_size: int,
        num_classes: int,
        *,
        weights: Sequence[float] | None = None,
        pooling: Pooling = "cls",
        pair_head: bool = False,
    ) -> None:
        super().__init__(hidden_size, pooling=pooling, pair_head=pair_head)
        self.classifier = nn.Linear(hidden_size, num_classes)
        self.weights: Tensor | None
        given = None if weights is None else torch.tensor(weights, dtype=torch.float32)
        self.register_buffer("weights", given, persistent=False)
        initialize(self)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (E, C)."""
        return {"logits": self.classifier(self.pool_features(states, batch))}
