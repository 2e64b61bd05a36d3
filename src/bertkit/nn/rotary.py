"""Rotary position embeddings (Su et al., arXiv 2104.09864): queries and keys are rotated by their position.

Entries k and k + F of a head, F = D / 2, are a pair, which is rotated by the angle t w_k at position t, with
w_k = theta^(-k / F). So the product of a query and a key depends on their distance, and no position has a parameter.
This is Hugging Face's order of the entries; in the paper those of a pair are neighbours.

Letters: L tokens in the packed list, W any width, D width of a head, F pairs.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.kernels.passes import Context


def frequencies(width: int, theta: float, device: torch.device | None = None) -> Float[Tensor, " F"]:
    """w_k, the angle by which the pair k of a head of this ``width`` turns from one position to the next."""
    return theta ** (-torch.arange(0, width, 2, device=device) / width)


def rotate(
    states: Float[Tensor, "L W"], positions: Int[Tensor, " L"], *, heads: int, width: int, theta: float
) -> Float[Tensor, "L W"]:
    """The states with their first ``heads`` heads of this ``width`` rotated; further columns are copied."""
    angles = positions[:, None] * frequencies(width, theta, states.device)
    rotated: Tensor = _Rotate.apply(  # type: ignore[no-untyped-call]
        states, angles.cos().to(states.dtype), angles.sin().to(states.dtype), heads
    )
    return rotated


class _Rotate(torch.autograd.Function):
    """Only the angles are kept for the backward pass, which rotates by the same angles in the other direction."""

    @staticmethod
    def forward(
        ctx: Context, states: Float[Tensor, "L W"], cosine: Float[Tensor, "L F"], sine: Float[Tensor, "L F"], heads: int
    ) -> Float[Tensor, "L W"]:
        ctx.save_for_backward(cosine, sine)
        ctx.size = heads
        return _turn(states, cosine, sine, heads)

    @staticmethod
    def backward(ctx: Context, gradient: Float[Tensor, "L W"]) -> tuple[Tensor, None, None, None]:
        cosine, sine = ctx.saved_tensors
        return _turn(gradient, cosine, -sine, ctx.size), None, None, None


def _turn(states: Tensor, cosine: Tensor, sine: Tensor, heads: int) -> Float[Tensor, "L W"]:
    turned = torch.empty_like(states)
    columns = 2 * heads * cosine.shape[1]
    turned[:, columns:] = states[:, columns:]
    shape = (len(states), heads, 2, cosine.shape[1])
    first, second = states[:, :columns].view(shape).unbind(2)
    new_first, new_second = turned[:, :columns].view(shape).unbind(2)
    cosine, sine = cosine[:, None], sine[:, None]
    new_first.copy_(first * cosine).addcmul_(second, sine, value=-1)
    new_second.copy_(second * cosine).addcmul_(first, sine)
    return turned
