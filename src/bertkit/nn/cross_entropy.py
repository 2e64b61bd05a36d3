"""Cross-entropy over a whole vocabulary.

Letters: N rows of logits, M of them with a label, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from bertkit.nn import cpu_kernels

_BLOCK = 1 << 20
"""Entries worked on at once, in float32: small enough to stay in a core's cache."""

_LEAST = torch.finfo(torch.float32).tiny
"""A smaller probability counts as this one, a loss of 87; its gradient is exact all the same."""


def sum_cross_entropy(logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"]) -> Float[Tensor, ""]:
    """The summed cross-entropy of the first M rows in float32, whatever the format of the logits.

    On a CPU the gradient is made in the same pass as the loss, a few rows at a time, and no float32 copy
    of the logits ever exists: 20 ms against 35 for 608 bfloat16 rows of 30,522 on one core. Without a gradient there is
    none on any device.
    """
    if cpu_kernels.applies(logits):
        total: Tensor = _SumCrossEntropy.apply(logits, labels)  # type: ignore[no-untyped-call]
        return total
    if logits.requires_grad:
        return F.cross_entropy(logits[: len(labels)].float(), labels, reduction="sum")
    rows = _rows_at_once(logits)
    blocks = zip(torch.split(logits[: len(labels)], rows), torch.split(labels, rows), strict=True)
    return torch.stack([F.cross_entropy(block.float(), its, reduction="sum") for block, its in blocks]).sum()


def argmax_logits(logits: Float[Tensor, "N V"]) -> Int[Tensor, " N"]:
    """The place of the highest logit of every row.

    In float32, as torch's search through bfloat16 is four times slower on a CPU, and a few rows at a time.
    """
    return torch.cat([block.float().argmax(dim=-1) for block in torch.split(logits, _rows_at_once(logits))])


def _rows_at_once(logits: Float[Tensor, "N V"]) -> int:
    return max(1, _BLOCK // logits.shape[1])


class _SumCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"]) -> Float[Tensor, ""]:
        gradient = torch.empty_like(logits)
        total = torch.zeros(())
        rows = _rows_at_once(logits)
        gradient[len(labels) :] = 0
        for start in range(0, len(labels), rows):
            block = slice(start, min(start + rows, len(labels)))
            places = labels[block, None]
            shares = torch.softmax(logits[block], dim=1, dtype=torch.float32)
            wanted = shares.gather(1, places)
            total -= wanted.clamp_min(_LEAST).log().sum()
            shares.scatter_(1, places, wanted - 1)
            gradient[block] = shares
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Float[Tensor, ""]) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        # A plain number: a product with a float32 tensor would take a slow path of mixed types.
        return gradient * float(upstream), None
