"""The vector of a feature that a head with one label per feature reads.

Letters: B rows, T tokens, H hidden width, E features.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput
from bertkit.nn.text_pooling import Pooling, TextPooling


def build_pooling(
    hidden_size: int, pooling: Pooling, *, pair_head: bool = False, symmetric: bool = False
) -> TextPooling | None:
    """The pooling of a head; None for ``cls``, with which it reads the encoder's pooled state."""
    return None if pooling == "cls" else TextPooling(hidden_size, pooling, pair=pair_head, symmetric=symmetric)


def positions_read(pooling: TextPooling | None, batch: Batch) -> Bool[Tensor, "B T"] | None:
    """The positions whose hidden states ``pool_rows`` reads: all (None), or none where the encoder pools."""
    return torch.zeros_like(batch.attention_mask) if pooling is None else None


def pool_rows(pooling: TextPooling | None, states: EncoderOutput, batch: Batch) -> Float[Tensor, "B H"]:
    """The vector of every row."""
    if pooling is None:
        return states.pooled
    hidden = states.hidden_states
    embeddings = hidden if states.embeddings is None else states.embeddings
    vectors: Tensor = pooling(hidden, embeddings, batch.attention_mask, batch.segment_ids)
    return vectors


def pool_features(pooling: TextPooling | None, states: EncoderOutput, batch: Batch) -> Float[Tensor, "E H"]:
    """The vector of every feature; if it is a pair in both orders, the sum of the vectors of both rows.

    GPT does so for pairs that have no natural order (Radford et al. 2018, section 3.3).
    """
    vectors, rows = pool_rows(pooling, states, batch), batch.on_host.choices
    if rows is None:
        return vectors
    owners = torch.repeat_interleave(rows).to(vectors.device, non_blocking=True)
    return vectors.new_zeros(len(rows), vectors.shape[1]).index_add(0, owners, vectors)
