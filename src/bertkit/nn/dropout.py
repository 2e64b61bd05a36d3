"""Dropout (Srivastava et al. 2014) that is cheap on a CPU.

On a CPU torch draws one Bernoulli number at a time, on one thread: 6.5 ns per entry, a fifth of a BERT-mini step. Here
torch's generator gives a single number, the start of a counter. The counter is mixed into 64-bit words on all threads
(by two multiplications and shifts, a shortened SplitMix64), and each 16-bit part of a word decides one entry by
comparison with the rate: 1 ns per entry on one thread. So the rate is exact to 1/65,536 (0.1 becomes 0.100006), and
kept entries are scaled by the actual rate. On other devices this is torch's own dropout.

The result depends on ``torch.manual_seed`` and torch's random state, but not on the number of threads.
``fused_training.c`` computes the same masks in a single sweep.

Letters: B rows, T tokens, W any width.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from bertkit.kernels import fused_training, passes
from bertkit.kernels.passes import DropMask

HEAD_DROPOUT = 0.1
"""The rate on the inputs of the heads of fine-tuning, as in google-research/bert (``run_classifier.py``)."""

# 16 bits per entry: with 8 bits dropout, 2 % of a step, would cost half, but a rate of 0.1 would become 0.1016.
_LEVELS = 65_536
_LOWEST = -32_768

# The constants of SplitMix64 (Steele, Lea and Flood 2014), as signed integers.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


def keep_scale(rate: float) -> float:
    """1 / (the share of entries that a mask of this rate keeps)."""
    return _LEVELS / (_LEVELS - _dropped_levels(rate))


def _dropped_levels(rate: float) -> int:
    return min(round(rate * _LEVELS), _LEVELS - 1)


def draw_mask(rate: float) -> DropMask:
    """A random mask for any number of entries; takes one number from torch's generator."""
    start = torch.empty((), dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    # The 16-bit parts are signed, so the dropped levels are the lowest ones from -32,768 on.
    return DropMask(int(start), _LOWEST + _dropped_levels(rate), keep_scale(rate))


def find_kept(shape: torch.Size, mask: DropMask) -> Tensor:
    """``mask`` as an int16 tensor on the CPU: 1 for a kept entry, 0 for a dropped one."""
    entries = math.prod(shape)
    parts = _hash_counter(mask.start, (entries + 3) // 4).view(torch.int16)[:entries]
    return parts.ge_(mask.lowest).view(shape)


def _hash_counter(start: int, count: int) -> Tensor:
    """(count,) int64 numbers of random bits: the hashes of ``start``, ``start + 1``, and so on."""
    words = torch.arange(count).add_(start).mul_(_STEP)
    for multiplier in (_FIRST, _SECOND):
        words.bitwise_xor_(words >> 32).mul_(multiplier)
    return words


def drop_(states: Tensor, kept: Tensor) -> Tensor:
    """Set the entries to 0, in place, where the mask ``kept`` of ``find_kept`` is 0. Nothing is scaled.

    16-bit floats are multiplied as integers: their bits times 1 or 0, many times faster than a product of mixed types.
    """
    if states.element_size() == kept.element_size():
        states.view(torch.int16).mul_(kept)
    else:
        states.mul_(kept)
    return states


class _Drop(torch.autograd.Function):
    """Dropout for training on a CPU. Only the int16 mask is kept for the backward pass."""

    @staticmethod
    def forward(ctx: passes.Context, states: Tensor, rate: float) -> Tensor:
        kept = find_kept(states.shape, draw_mask(rate))
        ctx.save_for_backward(kept)
        ctx.scale = keep_scale(rate)
        return drop_(states * ctx.scale, kept)

    @staticmethod
    def backward(ctx: passes.Context, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return drop_(gradient * ctx.scale, kept), None


class _FusedDrop(torch.autograd.Function):
    """The same in one compiled sweep; the mask is computed again in the backward pass."""

    @staticmethod
    def forward(ctx: passes.Context, states: Tensor, mask: DropMask) -> Tensor:
        ctx.mask = mask
        return fused_training.dropout(states, mask)

    @staticmethod
    @once_differentiable
    def backward(ctx: passes.Context, gradient: Tensor) -> tuple[Tensor, None]:
        assert ctx.mask is not None
        return fused_training.dropout(gradient, ctx.mask), None


class Dropout(nn.Module):
    """In training, set a share ``rate`` of the entries to 0 and scale the others by 1 / (1 - rate)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, states: Tensor) -> Tensor:
        """``states`` of any shape with dropped entries."""
        if not self.training or self.rate == 0:
            return states
        if not passes.trains_on_cpu(states):
            return F.dropout(states, self.rate)
        if fused_training.supports(states):
            dropped: Tensor = _FusedDrop.apply(states, draw_mask(self.rate))  # type: ignore[no-untyped-call]
        else:
            dropped = _Drop.apply(states, self.rate)  # type: ignore[no-untyped-call]
        return dropped


class RowDropout(Dropout):
    """Dropout with one mask for all tokens of a row, for an LSTM's input (Gal and Ghahramani, arXiv 1512.05287)."""

    def forward(self, states: Float[Tensor, "B T W"]) -> Float[Tensor, "B T W"]:
        """``states`` with dropped columns; every row drops other ones."""
        if not self.training or self.rate == 0:
            return states
        return states * super().forward(torch.ones_like(states[:, :1]))
