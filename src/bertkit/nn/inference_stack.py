"""The blocks of BERT for inference on a CPU: rows of equal length share a product, and padding is never computed.

Letters: B rows, T tokens of the longest row, N tokens in the list, M of them whose output is computed, H hidden width.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.inference_linear import LinearMaker, activation_name
from bertkit.nn.packing import round_up
from bertkit.nn.stack import MAX_SUBSET, BlockStack


def is_supported(stack: nn.Module) -> bool:
    """Whether all blocks are those of BERT, with attention in both directions and learned positions."""
    return isinstance(stack, BlockStack) and all(
        isinstance(block, PostNormBlock)
        and not (block.attention.causal or block.attention.rope_theta or block.attention.window)
        for block in stack
    )


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Consecutive rows of equal length, as (rows, length); all their tokens follow one another in a list."""

    groups: tuple[tuple[int, int], ...]

    @staticmethod
    def of(lengths: list[int]) -> RowGroups:
        """The groups of rows with these lengths."""
        return RowGroups(tuple((len(list(rows)), length) for length, rows in groupby(lengths)))

    @property
    def num_tokens(self) -> int:
        """The number of real tokens."""
        return sum(rows * length for rows, length in self.groups)

    def slices(self) -> Iterator[tuple[int, int, int]]:
        """(first token, rows, length) of each group."""
        start = 0
        for rows, length in self.groups:
            yield start, rows, length
            start += rows * length


class InferenceBlock(nn.Module):
    """A copy of ``PostNormBlock`` with layers made by ``make``; the last block computes only the tokens read."""

    def __init__(self, block: PostNormBlock, make: LinearMaker, *, last: bool) -> None:
        super().__init__()
        attention, feed_forward = block.attention, block.feed_forward
        self.num_heads = attention.num_heads
        width = attention.qkv.in_features
        self.qkv = make(attention.qkv)
        self.query = make(attention.qkv, rows=slice(None, width)) if last else None
        self.key_value = make(attention.qkv, rows=slice(width, None)) if last else None
        self.output = make(attention.output)
        self.inner = make(feed_forward.inner, activation_name(feed_forward.activation))
        self.outer = make(feed_forward.outer)
        self.attention_norm = copy.deepcopy(block.attention_norm)
        self.feed_forward_norm = copy.deepcopy(block.feed_forward_norm)

    def forward(
        self, tokens: Float[Tensor, "N H"], groups: RowGroups, selected: Int[Tensor, " M"] | None
    ) -> Float[Tensor, "M H"]:
        """The output for all tokens, or for those at ``selected``, of which every row has the same number."""
        if selected is None:
            mixed = self._attend(self.qkv(tokens), groups)
        else:
            assert self.query is not None and self.key_value is not None
            key_value, tokens = self.key_value(tokens), tokens[selected]
            mixed = self._attend_from(self.query(tokens), key_value, groups)
        attended = _normalize(self.attention_norm, self.output(mixed, tokens))
        return _normalize(self.feed_forward_norm, self.outer(self.inner(attended), attended))

    def _attend(self, qkv: Float[Tensor, "N W"], groups: RowGroups) -> Float[Tensor, "N H"]:
        mixed = []
        for start, rows, length in groups.slices():
            own = qkv[start : start + rows * length].float()  # attention in bfloat16 takes a tenth longer on a CPU
            parts = own.view(rows, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
            part = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
            mixed.append(part.transpose(1, 2).reshape(rows * length, -1))
        padding = len(qkv) - groups.num_tokens
        if padding:
            mixed.append(mixed[0].new_zeros(padding, mixed[0].shape[1]))
        return (mixed[0] if len(mixed) == 1 else torch.cat(mixed)).to(qkv.dtype)

    def _attend_from(
        self, query: Float[Tensor, "M H"], key_value: Float[Tensor, "N W"], groups: RowGroups
    ) -> Float[Tensor, "M H"]:
        per_row = len(query) // sum(rows for rows, _ in groups.groups)
        mixed, first = [], 0
        for start, rows, length in groups.slices():
            own = query[first : first + rows * per_row].float()
            own = own.view(rows, per_row, self.num_heads, -1).transpose(1, 2)
            tokens = key_value[start : start + rows * length].float()
            parts = tokens.view(rows, length, 2, self.num_heads, -1).permute(2, 0, 3, 1, 4)
            part = F.scaled_dot_product_attention(own, parts[0], parts[1])
            mixed.append(part.transpose(1, 2).reshape(rows * per_row, -1))
            first += rows * per_row
        return torch.cat(mixed).to(query.dtype)


class InferenceStack(nn.Module):
    """``BlockStack`` for inference: ``states`` are converted to ``dtype`` before the first block, and back after the
    last."""

    def __init__(self, stack: nn.Module, make: LinearMaker, *, dtype: torch.dtype) -> None:
        super().__init__()
        blocks = [block for block in stack.children() if isinstance(block, PostNormBlock)]
        self.blocks = nn.ModuleList(InferenceBlock(block, make, last=block is blocks[-1]) for block in blocks)
        self.dtype = dtype

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"],
        positions: Bool[Tensor, "B T"] | None,
        *,
        output_hidden_states: bool,
        gradient_checkpointing: bool = False,
    ) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "B T H"], ...]]:
        """As ``BlockStack.forward``, in float32 for any ``dtype``."""
        groups = RowGroups.of(mask.sum(dim=1).tolist())
        entries = _entries(mask, groups)
        tokens = (states.flatten(0, 1) if entries is None else states.flatten(0, 1)[entries]).to(self.dtype)
        selected = None if positions is None or output_hidden_states else _select(positions, mask)
        hidden_states = []
        for block in self.blocks:
            if output_hidden_states:
                hidden_states.append(_pad(tokens, entries, states.shape))
            tokens = block(tokens, groups, selected if block is self.blocks[-1] else None)
        if selected is not None:
            assert positions is not None
            entries = positions.flatten().nonzero().squeeze(1)
        output = _pad(tokens, entries, states.shape)
        return output, (*hidden_states, output) if output_hidden_states else ()


def _entries(mask: Bool[Tensor, "B T"], groups: RowGroups) -> Int[Tensor, " N"] | None:
    """The entries of the flattened rows that are computed; None for all.

    If there is padding, some of it is computed too, so that oneDNN sees few different lengths (see ``packing.py``).
    """
    if groups.num_tokens == mask.numel():
        return None
    real = mask.flatten()
    padding = (~real).nonzero().squeeze(1)[: round_up(groups.num_tokens) - groups.num_tokens]
    return torch.cat([real.nonzero().squeeze(1), padding])


def _select(positions: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, " M"] | None:
    """The indices of the tokens at ``positions`` in the list; None unless each row has the same number, and a few."""
    counts = positions.sum(dim=1)
    if not counts.eq(counts[0]).all() or int(counts.sum()) > MAX_SUBSET * int(mask.sum()):
        return None
    return (mask.flatten().cumsum(dim=0) - 1)[positions.flatten()]


def _pad(tokens: Float[Tensor, "N H"], entries: Int[Tensor, " N"] | None, shape: torch.Size) -> Float[Tensor, "B T H"]:
    """The tokens at their entries of the padded rows, in float32."""
    if entries is None:
        return tokens.float().view(shape)
    rows = torch.zeros(shape[0] * shape[1], shape[2])
    return rows.index_copy_(0, entries, tokens.float()).view(shape)


def _normalize(norm: ResidualNorm, states: Float[Tensor, "N H"]) -> Float[Tensor, "N H"]:
    return F.layer_norm(states, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
