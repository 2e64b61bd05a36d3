"""Two texts beside each other: what each token finds in the other text.

Letters: B pairs, S tokens of the longest first text, T of the longest second, W width of a token.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def masked_softmax(scores: Float[Tensor, "*any T"], mask: Bool[Tensor, "*#any T"]) -> Float[Tensor, "*any T"]:
    """Softmax over what ``mask`` has, 0 elsewhere; all 0 where it has nothing."""
    lowest = torch.finfo(scores.dtype).min  # and not -inf, of which there would be no softmax where all is masked
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0)


def align(
    first: Float[Tensor, "B S W"],
    second: Float[Tensor, "B T W"],
    first_mask: Bool[Tensor, "B S"],
    second_mask: Bool[Tensor, "B T"],
) -> tuple[Float[Tensor, "B S W"], Float[Tensor, "B T W"]]:
    """For every token of either text the mean of the other's tokens, weighted by the softmax of the dot products.

    Chen et al. (arXiv 1609.06038), formulas 11 to 13. Masks are true on real tokens.
    """
    scores = first @ second.transpose(1, 2)
    seen_by_first = masked_softmax(scores, second_mask.unsqueeze(1)) @ second
    seen_by_second = masked_softmax(scores.transpose(1, 2), first_mask.unsqueeze(1)) @ first
    return seen_by_first, seen_by_second
