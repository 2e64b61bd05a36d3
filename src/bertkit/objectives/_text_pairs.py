"""Examples of two texts: where their rows are, and the loss of recognising the second among those of a batch.

Letters: E examples, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.nn.text_pooling import Pooling, pool_states


def find_rows(batch: Batch) -> tuple[Int[Tensor, " E"], Int[Tensor, " E"]]:
    """The first and the last row of every example, on the host."""
    counts = batch.on_host.rows_per_feature
    if counts is None:
        counts = torch.tensor([len(batch)])
    last = counts.cumsum(0) - 1
    return last - counts + 1, last


def pool_texts(
    states: EncoderOutput, batch: Batch, pooling: Pooling
) -> tuple[Float[Tensor, "E H"], Float[Tensor, "E H"]]:
    """The vectors of the first and of the last row of every example, of length 1, in float32."""
    hidden = states.hidden_states.float()
    vectors = F.normalize(pool_states(hidden, batch.attention_mask, pooling), dim=1)
    first, last = (vectors[rows.to(hidden.device, non_blocking=True)] for rows in find_rows(batch))
    return first, last


def find_equal_texts(batch: Batch) -> Bool[Tensor, "E E"]:
    """(i, j): whether the second text of example j does not count as a negative for the first text of example i.

    It does not if it equals the first or the second text of i, or if the first texts of both are equal. Texts are
    compared as they were before ``mlm`` masked them.
    """
    original, masked = batch.on_host.input_ids, batch.on_host.labels.get("mlm")
    if masked is not None:
        original = torch.where(masked == IGNORE, original, masked)
    numbers: Tensor = torch.unique(original, dim=0, return_inverse=True)[1]  # equal rows have equal numbers
    first, last = (numbers[rows] for rows in find_rows(batch))
    equal = (first == first[:, None]) | (last == last[:, None]) | (last == first[:, None])
    return equal.fill_diagonal_(False).to(batch.input_ids.device, non_blocking=True)


def compare(
    first: Float[Tensor, "E H"], second: Float[Tensor, "E H"], batch: Batch, *, temperature: float
) -> Float[Tensor, "E E"]:
    """The logits of each second text for each first one: cosine / temperature of vectors of length 1, in float32."""
    with torch.autocast(first.device.type, enabled=False):  # in bfloat16 cosines near 1 would be multiples of 1/256
        logits = first.float() @ second.float().T / temperature
    return logits.masked_fill(find_equal_texts(batch), -torch.inf)


def can_compare(batch: Batch) -> bool:
    """Whether ``batch`` has several examples; one alone is compared with nothing."""
    return batch.rows_per_feature is not None and len(batch.rows_per_feature) > 1


def losses_of_own(logits: Float[Tensor, "E E"]) -> Float[Tensor, " E"]:
    """The cross-entropy of each example's own second text (van den Oord et al., arXiv 1807.03748)."""
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device), reduction="none")
