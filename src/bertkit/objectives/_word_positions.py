"""What objectives that predict a tag for every word have in common: their loss, and where words begin among tokens.

Letters: B examples, T tokens, W words of the longest example, H hidden width, C tags, N positions.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import IGNORE, WORD_STARTS, Batch, LossTerm, LossTerms, Outputs
from bertkit.contracts import Objective
from bertkit.nn.packing import PackedRows, find_true, select_tokens


class WordTagging(Objective):
    """A tag for every word. ``forward`` of a subclass returns ``logits`` (B, T, C); labels (B, T) are IGNORE on every
    token that does not begin a word.
    """

    reads_pooled = False

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed over the words with a label."""
        logits, labels = outputs["logits"].float().flatten(0, 1), batch.labels[self.label].flatten()
        total = F.cross_entropy(logits, labels, ignore_index=IGNORE, reduction="sum")
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}


def find_starts(batch: Batch) -> Bool[Tensor, "B T"]:
    """The first token of every word."""
    starts = batch.labels.get(WORD_STARTS)
    return batch.attention_mask if starts is None else starts == 1


def find_words(starts: Bool[Tensor, "B T"], device: torch.device) -> tuple[Int[Tensor, "B W"], Bool[Tensor, "B W"]]:
    """The first position of every word, on the ``device``, and which entries are words, where ``starts`` are.

    A row may have no words.
    """
    counts = starts.sum(dim=1)
    width = max(1, int(counts.max()))
    # A stable sort keeps the starts, which sort first, in reading order.
    columns = (~starts).byte().argsort(dim=1, stable=True)[:, :width]
    is_word = torch.arange(width, device=starts.device) < counts[:, None]
    return columns.to(device, non_blocking=True), is_word


def place_words(
    values: Float[Tensor, "B W C"], is_word: Bool[Tensor, "B W"], starts: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T C"]:
    """The values of words at their first tokens and 0 elsewhere."""
    listed = select_tokens(values.flatten(0, 1), find_true(is_word).to(values.device))
    rows, width = starts.shape
    return PackedRows(rows, width, find_true(starts).to(values.device)).pad(listed)


def pick(states: Float[Tensor, "B T H"], columns: Int[Tensor, "B W"]) -> Float[Tensor, "B W H"]:
    """The states at these positions of each row."""
    return states.gather(1, columns[:, :, None].expand(-1, -1, states.shape[-1]))
