"""The compiled passes of an optimizer's step on a CPU (``update.c``).

Letters: R rows of a table, W its width, K rows with a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.kernels.fused import call, is_compiled

_BLOCK = 4096
"""Numbers of a sum: ``BLOCK`` of update.c."""

NO_GRADIENT, NEVER_READ = -1, -2
"""Entries of rows in ``update_rows``, as in update.c."""


def supports(tensors: Sequence[Tensor]) -> bool:
    """Whether the passes can be used for ``tensors``: float32 on a CPU, and they are compiled."""
    return all(each.dtype == torch.float32 and each.device.type == "cpu" for each in tensors) and is_compiled()


def sum_of_squares(tensors: Sequence[Tensor]) -> Float[Tensor, ""]:
    """The sum of the squares of all numbers of ``tensors``, in float64."""
    lists = [each.contiguous() for each in tensors]
    counts = [each.numel() for each in lists]
    sums = torch.empty(sum(-(-count // _BLOCK) for count in counts), dtype=torch.float64, device="cpu")
    addresses = torch.tensor([each.data_ptr() for each in lists], dtype=torch.int64, device="cpu")
    call("sum_squares", addresses, torch.tensor(counts, dtype=torch.int64, device="cpu"), len(lists), sums)
    return sums.sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamStep:
    """The numbers of a step of AdamW, with both corrections of bias.

    ``decay`` multiplies the weights, ``rate`` the update, and ``root`` the square root of the second moment.
    """

    decay: float
    beta1: float
    beta2: float
    rate: float
    root: float
    eps: float


def update_rows(
    table: Float[Tensor, "R W"],
    first: Float[Tensor, "R W"],
    second: Float[Tensor, "R W"],
    gradients: Float[Tensor, "K W"],
    entries: Int[Tensor, " R"],
    step: AdamStep,
) -> None:
    """A step of AdamW on ``table`` and its moments, in place.

    ``entries`` says which of the ``gradients`` is that of a row, or NO_GRADIENT, or NEVER_READ if it never had one:
    then its moments are 0, and it only decays.
    """
    call(
        *("update_rows", table, first, second, gradients, entries, *table.shape),
        *(step.decay, step.beta1, step.beta2, step.rate, step.root, step.eps),
    )
