"""Soft alignment of two texts: each token attends to the tokens of the other text.

Letters: B pairs, S tokens of the longest first text, T of the longest second, W width of a token.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def masked_softmax(scores: Float[Tensor, "*any T"], mask: Bool[Tensor, "*#any T"]) -> Float[Tensor, "*any T"]:
    """Softmax over the entries where ``mask`` is True, 0 elsewhere; all 0 in a row without any True."""
    lowest = torch.finfo(scores.dtype).min  # with -inf the softmax of a fully masked row would be NaN
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0)


def align(
    first: Float[Tensor, "B S W"],
    second: Float[Tensor, "B T W"],
    first_mask: Bool[Tensor, "B S"],
    second_mask: Bool[Tensor, "B T"],
) -> tuple[Float[Tensor, "B S W"], Float[Tensor, "B T W"]]:
    """For every token of each text, the attention-weighted mean of the other text's tokens.

    ``softmax_j(a_i . b_j) b_j`` summed over j, and the same for b (Chen et al., arXiv 1609.06038, formulas 11 to 13).
    Masks are True on real tokens.
    """
    scores = first @ second.transpose(1, 2)
    aligned_to_first = masked_softmax(scores, second_mask.unsqueeze(1)) @ second
    aligned_to_second = masked_softmax(scores.transpose(1, 2), first_mask.unsqueeze(1)) @ first
    return aligned_to_first, aligned_to_second
