"""Where the tokens that are computed stand in the rows of a batch.

Everything in a Transformer but attention treats each token by itself, so the network works on a plain list of tokens
without padding, and attention alone lays them out in rows.

A product of every new number of tokens makes the CPU library (oneDNN) build a kernel, some milliseconds and megabytes
that it keeps for the next thousand of them. So lists are filled up to round lengths with tokens that nobody reads.

A layout has lengths that the program needs to go on, so it is made on the host and then moved to where the tokens are.

Letters: B rows, T tokens of the longest row, N tokens in the list, M tokens chosen from it, W any width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, slots=True, eq=False)
class PackedRows:
    """``slots`` says which of the ``rows * width`` places each token of the list has; None where they fill them all.

    ``mask`` is True where a token may be read, or None where every one may.
    """

    rows: int
    width: int
    slots: Int[Tensor, " N"] | None = None
    mask: Bool[Tensor, "B T"] | None = None

    def to(self, device: torch.device) -> PackedRows:
        """The same layout for tokens on ``device``."""
        return replace(self, slots=_move(self.slots, device), mask=_move(self.mask, device))

    @staticmethod
    def of(filled: Bool[Tensor, "B T"]) -> PackedRows:
        """The layout of the tokens where ``filled`` is True, row by row, and then of some that fill up the list."""
        rows, width = filled.shape
        slots = filled.flatten().nonzero().squeeze(1)
        if len(slots) == rows * width:
            return PackedRows(rows, width)
        spare = (~filled).flatten().nonzero().squeeze(1)[: round_up(len(slots)) - len(slots)]
        return PackedRows(rows, width, torch.cat([slots, spare]), filled)

    def spread(self, tokens: Float[Tensor, "N W"]) -> Float[Tensor, "B T W"]:
        """The list in rows, with zeros where nothing stands."""
        if self.slots is not None:
            tokens = _Spread.apply(tokens, self.slots, self.rows * self.width)  # type: ignore[no-untyped-call]
        return tokens.view(self.rows, self.width, -1)

    def collect(self, rows: Float[Tensor, "B T W"]) -> Float[Tensor, "N W"]:
        """The list again, without what stands elsewhere."""
        places = rows.flatten(0, 1)
        return places if self.slots is None else choose(places, self.slots)


@dataclass(frozen=True, slots=True, eq=False)
class TokenSubset:
    """Some tokens of a list: which, and how they are laid out among themselves, in rows as short as possible."""

    index: Int[Tensor, " M"]
    layout: PackedRows

    def to(self, device: torch.device) -> TokenSubset:
        """The same choice from a list on ``device``."""
        return TokenSubset(self.index.to(device, non_blocking=True), self.layout.to(device))

    def find_columns(self, origin: PackedRows) -> Int[Tensor, "B Q"]:
        """Which place of its row each of them has in ``origin``, the layout of the whole list; 0 where none stands."""
        slots = self.index if origin.slots is None else origin.slots[self.index]
        columns = slots.new_zeros(self.layout.rows * self.layout.width)
        places = slice(None) if self.layout.slots is None else self.layout.slots
        columns[places] = slots % origin.width
        return columns.view(self.layout.rows, -1)

    @staticmethod
    def of(wanted: Bool[Tensor, "B T"], filled: Bool[Tensor, "B T"]) -> TokenSubset:
        """The ``wanted`` ones of the list of all ``filled`` places, in reading order."""
        rows = len(wanted)
        ranks = wanted.cumsum(dim=1) - 1
        most = int(ranks[:, -1].max()) + 1
        places = (ranks + most * torch.arange(rows, device=wanted.device)[:, None])[wanted]
        index = (filled.flatten().cumsum(dim=0) - 1)[wanted.flatten()]
        return TokenSubset(index, PackedRows(rows, most, None if len(places) == rows * most else places))


def _move(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    return None if tensor is None else tensor.to(device, non_blocking=True)


def round_up(count: int) -> int:
    """The next of the thirty-two round numbers in every octave: at most a thirty-second more."""
    step = 1 << max(0, count.bit_length() - 6)
    return -(-count // step) * step


def fill_up(index: Int[Tensor, " M"]) -> Int[Tensor, " N"]:
    """The index, and behind it 0 up to a round length."""
    return F.pad(index, (0, round_up(len(index)) - len(index)))


def choose(tokens: Float[Tensor, "N W"], index: Int[Tensor, " M"]) -> Float[Tensor, "M W"]:
    """The tokens at ``index``, none of which may occur twice."""
    chosen: Tensor = _Choose.apply(tokens, index)  # type: ignore[no-untyped-call]
    return chosen


class _Spread(torch.autograd.Function):
    """Rows of zeros, with the tokens at their slots. No slot occurs twice, so both passes are plain copies."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, slots: Tensor, places: int) -> Tensor:
        ctx.save_for_backward(slots)
        return tokens.new_zeros(places, tokens.shape[1]).index_copy_(0, slots, tokens)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (slots,) = ctx.saved_tensors
        return gradient.index_select(0, slots), None, None


class _Choose(torch.autograd.Function):
    """The other way round. torch's own backward pass adds, as an index might occur twice, one token at a time."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.places = len(tokens)
        return tokens.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.places, gradient.shape[1]).index_copy_(0, index, gradient), None
