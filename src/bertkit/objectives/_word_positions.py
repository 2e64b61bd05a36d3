"""Positions of words among tokens, and losses over words, for objectives that predict a tag for every word.

Letters: B examples, T tokens, W words of the longest example, H hidden width, C tags, N positions.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch

WORD_STARTS = "word_starts"
"""The entry of ``Batch.labels`` that is 1 on tokens that begin a word; without it every token is a word."""


def sum_losses(logits: Float[Tensor, "B T C"], labels: Int[Tensor, "B T"]) -> Tensor:
    """Cross-entropy, summed over the words with a label."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")


def count_correct(logits: Float[Tensor, "B T C"], labels: Int[Tensor, "B T"]) -> Tensor:
    """The number of words whose highest logit is that of the label."""
    return (logits.argmax(dim=-1) == labels).sum()


def find_starts(batch: Batch) -> Bool[Tensor, "B T"]:
    """The first token of every word."""
    starts = batch.labels.get(WORD_STARTS)
    return batch.attention_mask if starts is None else starts == 1


def find_words(starts: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, "B W"], Bool[Tensor, "B W"]]:
    """The first position of every word, and which entries are words. A row without words has its first token."""
    counts = starts.sum(dim=1).clamp(min=1)
    width = int(counts.max())
    # A stable sort keeps the starts, which sort first, in reading order.
    columns = (~starts).byte().argsort(dim=1, stable=True)[:, :width]
    return columns, torch.arange(width, device=starts.device) < counts[:, None]


def index_positions(positions: Bool[Tensor, "B T"]) -> Int[Tensor, " N"]:
    """The indices of these positions in the flattened batch."""
    return positions.flatten().nonzero().squeeze(1)


def pick(states: Float[Tensor, "B T H"], columns: Int[Tensor, "B W"]) -> Float[Tensor, "B W H"]:
    """The states at these positions of each row."""
    return states.gather(1, columns[:, :, None].expand(-1, -1, states.shape[-1]))
