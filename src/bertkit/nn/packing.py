"""Packed (unpadded) token sequences: which entries of a padded batch are computed.

Every layer of a Transformer except attention treats tokens independently, so the network works on a flat list of the
real tokens, and only attention pads this list to rows. FlashAttention calls this format "varlen", ModernBERT
"unpadding".

On a CPU, oneDNN compiles a kernel for every new number of tokens, which takes milliseconds and some megabytes, and
keeps the last thousand of them. So lists are padded to round lengths (``round_up``) with tokens that are ignored.

``PackedRows`` and ``TokenSubset`` are computed on the host, because their lengths decide the shapes of what follows,
and then moved to the device of the tokens.

Letters: B rows, S = B + 1, T tokens of the longest row, N tokens in the list, M tokens selected from it, Q selected
tokens of the row that has most of them, W any width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int32, Shaped
from torch import Tensor
from torch.nn import functional as F

from bertkit.kernels.passes import Context


@dataclass(frozen=True, slots=True, eq=False)
class PackedRows:
    """Where the tokens of a list belong in ``rows`` rows of ``width`` entries.

    ``indices`` is the entry of the flattened rows that each token of the list fills; None if the list fills all of
    them in order. ``mask`` is True on real tokens; None if there is no padding. ``offsets`` is where each row begins in
    the list, and where the last ends, for the attention kernel that reads rows from it; only on a GPU with that kernel.
    ``lengths`` is how many entries each row has up to its last token, on the host; None if there is no padding.
    """

    rows: int
    width: int
    indices: Int[Tensor, " N"] | None = None
    mask: Bool[Tensor, "B T"] | None = None
    offsets: Int32[Tensor, " S"] | None = None
    lengths: Int[Tensor, " B"] | None = None

    def to(self, device: torch.device) -> PackedRows:
        """The same layout for tokens on ``device``."""
        offsets = self.find_offsets() if _has_flash_attention(device) else None
        indices, mask, offsets = (_move(each, device) for each in (self.indices, self.mask, offsets))
        return replace(self, indices=indices, mask=mask, offsets=offsets)

    def find_offsets(self) -> Int32[Tensor, " S"]:
        """``offsets``, on the host, of a layout there whose list is not rounded."""
        begins = self.width * np.arange(self.rows + 1)
        found = begins if self.indices is None else np.searchsorted(self.indices.numpy(), begins)
        return torch.from_numpy(found.astype(np.int32))

    @staticmethod
    def of(mask: Bool[Tensor, "B T"], *, rounded: bool = True) -> PackedRows:
        """The layout of all tokens where ``mask`` is True, row by row.

        If ``rounded``, entries of the padding follow up to a round length.
        """
        rows, width = mask.shape
        indices = find_true(mask)
        if len(indices) == rows * width:  # without padding the list is the rows, and nothing has to be copied
            return PackedRows(rows, width)
        if rounded:
            padding = find_true(~mask)[: round_up(len(indices)) - len(indices)]
            indices = torch.cat([indices, padding])
        lengths = torch.from_numpy(((np.arange(width) + 1) * mask.numpy()).max(axis=1))
        return PackedRows(rows, width, indices, mask, lengths=lengths)

    def columns(self, device: torch.device) -> Int[Tensor, " N"]:
        """The column of each token of the list in its row: its position."""
        if self.indices is None:
            return torch.arange(self.width, device=device).repeat(self.rows)
        return self.indices % self.width

    def pad(self, tokens: Float[Tensor, "N W"]) -> Float[Tensor, "B T W"]:
        """The list as padded rows; entries without a token are 0."""
        if self.indices is not None:
            tokens = _Scatter.apply(tokens, self.indices, self.rows * self.width)  # type: ignore[no-untyped-call]
        return tokens.view(self.rows, self.width, -1)

    def unpad(self, rows: Shaped[Tensor, "B T W"]) -> Shaped[Tensor, "N W"]:
        """The tokens of padded rows as a list; the inverse of ``pad``."""
        entries = rows.flatten(0, 1)
        return entries if self.indices is None else select_tokens(entries, self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class TokenSubset:
    """Some tokens of a list: their ``indices`` in it, and their own ``layout`` in rows as short as possible."""

    indices: Int[Tensor, " M"]
    layout: PackedRows

    def to(self, device: torch.device) -> TokenSubset:
        """The same subset of a list on ``device``."""
        return TokenSubset(self.indices.to(device, non_blocking=True), self.layout.to(device))

    def find_columns(self, origin: PackedRows) -> Int[Tensor, "B Q"]:
        """The column of each selected token in ``origin``, the layout of the whole list; 0 where there is no token."""
        entries = self.indices if origin.indices is None else origin.indices[self.indices]
        columns = entries.new_zeros(self.layout.rows * self.layout.width)
        filled = slice(None) if self.layout.indices is None else self.layout.indices
        columns[filled] = entries % origin.width
        return columns.view(self.layout.rows, -1)

    @staticmethod
    def of(positions: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> TokenSubset:
        """The tokens where ``positions`` is True, from the list of all tokens where ``mask`` is, in reading order."""
        selected, real = positions.numpy(), mask.numpy()
        counts = selected.sum(axis=1)
        rows, width, total = len(counts), int(counts.max()), int(counts.sum())
        indices = (np.cumsum(real) - 1)[selected.ravel()]
        # The rank of a token among the selected ones of its row is its column in the short rows.
        starts = np.cumsum(counts) - counts
        entries = np.arange(total) + np.repeat(width * np.arange(rows) - starts, counts)
        layout = PackedRows(rows, width)
        if total < rows * width:
            layout = PackedRows(rows, width, torch.from_numpy(entries), lengths=torch.from_numpy(counts))
        return TokenSubset(torch.from_numpy(indices), layout)


def find_true(mask: Bool[Tensor, "*B T"]) -> Int[Tensor, " N"]:
    """The entries of the flattened ``mask``, on the host, that are True.

    By NumPy, on one thread: torch starts all of them for 30,000 entries, and on 16 cores its 2 ms per step let a GPU
    wait.
    """
    return torch.from_numpy(np.flatnonzero(mask.numpy()))


@cache
def _has_flash_attention(device: torch.device) -> bool:
    """Whether torch's FlashAttention runs there: on GPUs from Ampere on."""
    return (
        device.type == "cuda"
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(device) >= (8, 0)
    )


def _move(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    return None if tensor is None else tensor.to(device, non_blocking=True)


def round_up(count: int) -> int:
    """``count`` rounded up to one of 32 values per power of two: at most 1/32 more."""
    # Without rounding, oneDNN's kernels made a pre-training of BERT-mini grow to 5.9 GB; with it, it stays at 1.1 GB.
    step = 1 << max(0, count.bit_length() - 6)
    return -(-count // step) * step


def pad_indices(indices: Int[Tensor, " M"]) -> Int[Tensor, " N"]:
    """``indices`` followed by zeros up to a round length."""
    return F.pad(indices, (0, round_up(len(indices)) - len(indices)))


def select_tokens(tokens: Shaped[Tensor, "N W"], indices: Int[Tensor, " M"]) -> Shaped[Tensor, "M W"]:
    """``tokens[indices]`` for distinct indices, with a backward pass that copies instead of adding."""
    selected: Tensor = _Select.apply(tokens, indices)  # type: ignore[no-untyped-call]
    return selected


class _Scatter(torch.autograd.Function):
    """Zeros with the tokens at their indices. No index occurs twice, so both passes are plain copies."""

    @staticmethod
    def forward(ctx: Context, tokens: Tensor, indices: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(indices)
        return tokens.new_zeros(size, tokens.shape[1]).index_copy_(0, indices, tokens)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> tuple[Tensor, None, None]:
        (indices,) = ctx.saved_tensors
        return gradient.index_select(0, indices), None, None


class _Select(torch.autograd.Function):
    """The inverse of ``_Scatter``."""

    @staticmethod
    def forward(ctx: Context, tokens: Tensor, indices: Tensor) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.size = len(tokens)
        return tokens.index_select(0, indices)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> tuple[Tensor, None]:
        # torch's own backward pass adds token by token, because an index might occur twice; here none does.
        (indices,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.size, gradient.shape[1]).index_copy_(0, indices, gradient), None
