"""Dropout that is cheap on a CPU.

torch draws one Bernoulli number at a time there, on one thread: 6.5 ns an entry, a fifth of a BERT-mini step.
Here torch's generator is asked for one number only. From it a counter starts, which is mixed into 64-bit words
on all threads (the finaliser of SplitMix64, as in ``draws.py``), and every 16-bit part of a word decides one
entry by comparison with the rate: 1 ns an entry on one thread. So the rate is honoured to 1/65,536 (0.1 becomes
0.100006), and what is kept is scaled by the rate really used. On other devices it is torch's own dropout.

``torch.manual_seed`` governs it, and torch's saved random state resumes it; the number of threads is nothing to it.

Letters: B rows, T tokens, W any width.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn import cpu_kernels

_LEVELS = 65_536
_LOWEST = -32_768

# The constants of SplitMix64 (Steele, Lea and Flood 2014), as signed integers.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


def keep_scale(rate: float) -> float:
    """One over the share of entries that ``sample_kept`` keeps."""
    return _LEVELS / (_LEVELS - _dropped_levels(rate))


def _dropped_levels(rate: float) -> int:
    return min(round(rate * _LEVELS), _LEVELS - 1)


def sample_kept(shape: torch.Size, rate: float) -> Tensor:
    """int16 ones for what stays and zeros for what is dropped, on the CPU, from torch's generator."""
    entries = math.prod(shape)
    parts = _draw_words((entries + 3) // 4).view(torch.int16)[:entries]
    return parts.ge_(_LOWEST + _dropped_levels(rate)).view(shape)


def _draw_words(count: int) -> Tensor:
    """(count,) int64 with every bit random."""
    start = torch.empty((), dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    words = torch.arange(count).add_(start).mul_(_STEP)
    for multiplier in (_FIRST, _SECOND):
        words.bitwise_xor_(words >> 32).mul_(multiplier)
    return words


def drop_(states: Tensor, kept: Tensor) -> Tensor:
    """Zero in place what is not ``kept`` (as ``sample_kept`` made it). Nothing is scaled.

    Two-byte floats are multiplied as integers: one or zero times their bits, many times faster than a
    product of mixed types.
    """
    if states.element_size() == kept.element_size():
        states.view(torch.int16).mul_(kept)
    else:
        states.mul_(kept)
    return states


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, rate: float) -> Tensor:
        kept = sample_kept(states.shape, rate)
        ctx.save_for_backward(kept)
        ctx.scale = keep_scale(rate)
        return drop_(states * ctx.scale, kept)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return drop_(gradient * ctx.scale, kept), None


class Dropout(nn.Module):
    """Zero a share ``rate`` of the entries in training and scale up the rest; nothing in evaluation."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, states: Tensor) -> Tensor:
        """``states`` with holes, any shape."""
        if not self.training or self.rate == 0:
            return states
        if not cpu_kernels.applies(states):
            return F.dropout(states, self.rate)
        dropped: Tensor = _Drop.apply(states, self.rate)  # type: ignore[no-untyped-call]
        return dropped


class RowDropout(Dropout):
    """Dropout with the same holes in every token of a row, for what an LSTM reads (Gal and Ghahramani, 1512.05287)."""

    def forward(self, states: Float[Tensor, "B T W"]) -> Float[Tensor, "B T W"]:
        """``states`` without some of their columns, others in every row."""
        if not self.training or self.rate == 0:
            return states
        return states * super().forward(torch.ones_like(states[:, :1]))
