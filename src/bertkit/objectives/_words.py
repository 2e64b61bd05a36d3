"""The marking of tags, shared by the objectives that tell one for every word."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.contracts import IGNORE


def sum_losses(logits: Float[Tensor, "B T C"], labels: Int[Tensor, "B T"]) -> Tensor:
    """Cross-entropy, summed over the words that have a label."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")


def count_hits(logits: Float[Tensor, "B T C"], labels: Int[Tensor, "B T"]) -> Tensor:
    """How many words have the highest logit where the label is."""
    return (logits.argmax(dim=-1) == labels).sum()
