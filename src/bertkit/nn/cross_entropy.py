"""Cross-entropy over a large vocabulary.

    loss = sum_i (logsumexp(logits_i) - logits_i[labels_i])
    d loss / d logits_i = softmax(logits_i) - onehot(labels_i)

Letters: N rows of logits, of which the first M have a label, V vocabulary.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from bertkit.kernels import fused_training, passes

_BLOCK_SIZE = 1 << 20
"""Logits per block, 4 MB in float32. A quarter to twice this size takes the same time within 6 %."""


def sum_cross_entropy(logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"]) -> Float[Tensor, ""]:
    """The summed cross-entropy of the first M rows, in float32 whatever the dtype of the logits.

    In training on a CPU there is no float32 copy of all logits: without the compiled passes loss and gradient are
    computed together, a few rows at a time, 20 ms instead of 35 ms for 608 bfloat16 rows of 30,522 on one core. Without
    a gradient no device makes such a copy.
    """
    if passes.trains_on_cpu(logits):
        function = _FusedSumCrossEntropy if fused_training.supports(logits) else _SumCrossEntropy
        total: Tensor = function.apply(logits, labels)  # type: ignore[no-untyped-call]
        return total
    if logits.requires_grad:  # on a GPU, or while the model is traced
        return F.cross_entropy(logits[: len(labels)].float(), labels, reduction="sum")
    rows = _rows_per_block(logits)
    blocks = zip(torch.split(logits[: len(labels)], rows), torch.split(labels, rows), strict=True)
    return torch.stack([F.cross_entropy(block.float(), label, reduction="sum") for block, label in blocks]).sum()


def argmax_logits(logits: Float[Tensor, "N V"]) -> Int[Tensor, " N"]:
    """The index of the highest logit of every row.

    Computed in float32 and in blocks: torch's argmax of bfloat16 is four times slower on a CPU.
    """
    return torch.cat([block.float().argmax(dim=-1) for block in torch.split(logits, _rows_per_block(logits))])


def _rows_per_block(logits: Float[Tensor, "N V"]) -> int:
    return max(1, _BLOCK_SIZE // logits.shape[1])


class _SumCrossEntropy(torch.autograd.Function):
    """``sum_cross_entropy`` for training on a CPU. The gradient is kept for the backward pass, not the logits."""

    @staticmethod
    def forward(ctx: passes.Context, logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"]) -> Float[Tensor, ""]:
        gradient = torch.empty_like(logits)
        total = torch.zeros((), dtype=torch.float32)
        rows = _rows_per_block(logits)
        gradient[len(labels) :] = 0  # rows without a label only round up the number of rows
        for start in range(0, len(labels), rows):
            block = slice(start, min(start + rows, len(labels)))
            label = labels[block, None]
            logarithms = torch.log_softmax(logits[block], dim=1, dtype=torch.float32)
            of_label = logarithms.gather(1, label)
            total -= of_label.sum()
            gradient[block] = logarithms.exp_().scatter_(1, label, of_label.exp_() - 1)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: passes.Context, upstream: Float[Tensor, ""]) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        # float(): a product of bfloat16 with a float32 tensor would take torch's slow path for mixed types.
        return gradient * float(upstream), None


class _FusedSumCrossEntropy(torch.autograd.Function):
    """The same with compiled passes: fast enough to compute the gradient in the backward pass, already scaled."""

    @staticmethod
    def forward(ctx: passes.Context, logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"]) -> Float[Tensor, ""]:
        logits = logits if logits.stride(1) == 1 else logits.contiguous()
        labels = labels.long().contiguous()
        sums = fused_training.log_sum_exp(logits[: len(labels)])
        ctx.save_for_backward(logits, labels, sums)
        return (sums - logits[: len(labels)].gather(1, labels[:, None]).squeeze(1)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: passes.Context, upstream: Float[Tensor, ""]) -> tuple[Tensor, None]:
        logits, labels, sums = ctx.saved_tensors
        return fused_training.cross_entropy_backward(logits, labels, sums, float(upstream)), None
