"""Words among tokens and the marking of their tags, shared by the objectives that tell one for every word.

Letters: B examples, T tokens, W words of the longest example, H hidden width, C tags, N places.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch

WORD_STARTS = "word_starts"
"""The entry of ``Batch.labels`` that is 1 on tokens that begin a word; without it every token is one."""


def sum_losses(logits: Float[Tensor, "B T C"], labels: Int[Tensor, "B T"]) -> Tensor:
    """Cross-entropy, summed over the words that have a label."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")


def count_hits(logits: Float[Tensor, "B T C"], labels: Int[Tensor, "B T"]) -> Tensor:
    """How many words have the highest logit where the label is."""
    return (logits.argmax(dim=-1) == labels).sum()


def find_starts(batch: Batch) -> Bool[Tensor, "B T"]:
    """The first token of every word."""
    starts = batch.labels.get(WORD_STARTS)
    return batch.attention_mask if starts is None else starts == 1


def find_words(starts: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, "B W"], Bool[Tensor, "B W"]]:
    """Where each row's words begin, and which there are. A row without any has its first token for one."""
    counts = starts.sum(dim=1).clamp(min=1)
    most = int(counts.max())
    places = (~starts).byte().argsort(dim=1, stable=True)[:, :most]
    return places, torch.arange(most, device=starts.device) < counts[:, None]


def number_places(places: Bool[Tensor, "B T"]) -> Int[Tensor, " N"]:
    """The numbers of these places, row by row."""
    return places.flatten().nonzero().squeeze(1)


def pick(states: Float[Tensor, "B T H"], places: Int[Tensor, "B W"]) -> Float[Tensor, "B W H"]:
    """The states at these places of each row."""
    return states.gather(1, places[:, :, None].expand(-1, -1, states.shape[-1]))
