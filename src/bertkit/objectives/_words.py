"""The marking of tags, shared by the objectives that tell one for every word."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from bertkit.contracts import IGNORE, LossTerm


def sum_losses(logits: Tensor, labels: Tensor) -> LossTerm:
    """Cross-entropy of logits (B, T, C) against labels (B, T), summed over those that there are."""
    total = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")
    return LossTerm(total, _count(labels))


def count_hits(logits: Tensor, labels: Tensor) -> LossTerm:
    """Words whose highest logit is the label's."""
    return LossTerm((logits.argmax(dim=-1) == labels).sum(), _count(labels))


def _count(labels: Tensor) -> int:
    return int((labels != IGNORE).sum())
