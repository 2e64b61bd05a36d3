"""The blocks of BERT for inference on a CPU: rows of equal length share a product, and padding is never computed.

Letters: B rows, T tokens of the longest row, N tokens in the list, M of them whose output is computed, H hidden width,
W = 2 H.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.kernels import amx_attention
from bertkit.kernels.amx import has_amx
from bertkit.kernels.fused_inference import (
    CompiledBlock,
    CompiledBlocks,
    attend_rows,
    can_attend,
    can_normalize,
    layer_norm,
)
from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.inference_linear import CompiledLinear, LinearMaker, activation_name
from bertkit.nn.int8_linear import Int8Linear
from bertkit.nn.packing import PackedRows, find_true
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
    def longest(self) -> int:
        """Tokens of the longest row."""
        return max((length for _, length in self.groups), default=0)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return sum(rows for rows, _ in self.groups)

    def slices(self) -> Iterator[tuple[int, int, int]]:
        """(first token, rows, length) of each group."""
        start = 0
        for rows, length in self.groups:
            yield start, rows, length
            start += rows * length


class InferenceBlock(nn.Module):
    """A copy of ``PostNormBlock`` with layers made by ``make``; the last block computes only the tokens read."""

    def __init__(self, block: PostNormBlock, make: LinearMaker, *, last: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.attention_dtype = _attention_dtype(dtype)
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
            qkv = self.qkv(tokens)
            context = self._attend(qkv[:, : tokens.shape[1]], qkv[:, tokens.shape[1] :], groups)
        else:
            assert self.query is not None and self.key_value is not None
            key_value, tokens = self.key_value(tokens), tokens[selected]
            context = self._attend(self.query(tokens), key_value, groups, per_row=len(selected) // groups.num_rows)
        attended = _normalize(self.attention_norm, self.output(context, tokens))
        return _normalize(self.feed_forward_norm, self.outer(self.inner(attended), attended))

    @property
    def head_size(self) -> int:
        """Numbers of a token in one head."""
        return self.attention_norm.normalized_shape[0] // self.num_heads

    def describe(self) -> CompiledBlock | None:
        """The block for ``CompiledBlocks``, if all its layers are our own and its activation is GELU."""
        layers = (self.qkv, self.output, self.inner, self.outer)
        own = [layer.describe() for layer in layers if isinstance(layer, (CompiledLinear, Int8Linear))]
        if len(own) < len(layers) or not self.inner.is_gelu:
            return None
        return CompiledBlock(own, (self.attention_norm, self.feed_forward_norm), self.num_heads)

    def _attend(
        self,
        query: Float[Tensor, "M H"],
        key_value: Float[Tensor, "N W"],
        groups: RowGroups,
        *,
        per_row: int | None = None,
    ) -> Float[Tensor, "M H"]:
        """The attention of ``per_row`` queries of each row, or of all tokens, to all tokens of the row."""
        key, value = key_value[:, : query.shape[1]], key_value[:, query.shape[1] :]
        context, first = query.new_empty(query.shape), 0
        for start, rows, length in groups.slices():
            end, stop = first + rows * (per_row or length), start + rows * length
            self._attend_rows(query[first:end], key[start:stop], value[start:stop], context[first:end], rows)
            first = end
        if first < len(context):
            context[first:] = 0  # the padding
        return context

    def _attend_rows(
        self,
        query: Float[Tensor, "M H"],
        key: Float[Tensor, "N H"],
        value: Float[Tensor, "N H"],
        out: Float[Tensor, "M H"],
        rows: int,
    ) -> None:
        """Fill ``out``, the result for ``rows`` texts of equal length."""
        queries, keys, size = len(query) // rows, len(key) // rows, key.shape[1] // self.num_heads
        if amx_attention.supports(queries, keys, size, key.dtype):
            amx_attention.attend_rows(query, key, value, out, rows=rows, heads=self.num_heads)
            return
        if can_attend(keys, size, key.dtype):
            attend_rows(query, key, value, out, rows=rows, heads=self.num_heads)
            return
        query, key, value = (
            part.to(self.attention_dtype).view(rows, len(part) // rows, self.num_heads, -1).transpose(1, 2)
            for part in (query, key, value)
        )
        out.copy_(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(out.shape))


class InferenceStack(nn.Module):
    """``BlockStack`` for inference: ``states`` are converted to ``dtype`` before the first block, and back after the
    last."""

    def __init__(self, stack: BlockStack, make: LinearMaker, *, dtype: torch.dtype) -> None:
        super().__init__()
        # Not its children(), which name a block once that several layers share.
        blocks = [block for block in stack if isinstance(block, PostNormBlock)]
        self.blocks = nn.ModuleList(
            InferenceBlock(block, make, last=number == len(blocks), dtype=dtype)
            for number, block in enumerate(blocks, start=1)
        )
        self.dtype = dtype
        self._compiled: CompiledBlocks | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the addresses, which would be those of the stack that is copied."""
        return {**self.__dict__, "_compiled": None}

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
        lengths = mask.sum(dim=1)
        groups = RowGroups.of(lengths.tolist())
        compiled = None if output_hidden_states else self._compile(groups)
        entries = PackedRows.of(mask, rounded=compiled is None).indices
        tokens = (states.flatten(0, 1) if entries is None else states.flatten(0, 1)[entries]).to(self.dtype)
        selected = None if positions is None or output_hidden_states else _select(positions, mask)
        hidden_states = []
        last = len(self.blocks) - 1
        done, whole = 0, last if selected is not None else last + 1
        if compiled and whole:
            tokens, done = compiled.run(tokens, lengths, whole), whole
        for number, block in enumerate(list(self.blocks)[done:], start=done):
            if output_hidden_states:
                hidden_states.append(_pad(tokens, entries, states.shape))
            tokens = block(tokens, groups, selected if number == last else None)
        if selected is not None:
            assert positions is not None
            entries = find_true(positions)
        output = _pad(tokens, entries, states.shape)
        return output, (*hidden_states, output) if output_hidden_states else ()

    def _compile(self, groups: RowGroups) -> CompiledBlocks | None:
        """The blocks as one compiled function, if their layers have one and texts are short."""
        blocks = [cast(InferenceBlock, block) for block in self.blocks]
        if not CompiledBlocks.can_run(groups.num_rows, groups.longest, blocks[0].head_size):
            return None
        if self._compiled is None:
            described = [each for block in blocks if (each := block.describe())]
            self._compiled = CompiledBlocks.of(described) if len(described) == len(blocks) else None
        return self._compiled


def _attention_dtype(dtype: torch.dtype) -> torch.dtype:
    """The format in which attention of states in ``dtype`` is fastest.

    In bfloat16 a batch of 1,000 tokens in rows of 25, 64 and 128 takes 0.90, 0.61 and 0.58 times as long as in float32
    on a chip with AMX, and 1.1 times as long on an AMD Zen 4.
    """
    return dtype if has_amx() else torch.float32


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
    rows = torch.zeros(shape[0] * shape[1], shape[2], dtype=torch.float32)
    return rows.index_copy_(0, entries, tokens.float()).view(shape)


def _normalize(norm: ResidualNorm, states: Float[Tensor, "N H"]) -> Float[Tensor, "N H"]:
    if can_normalize(states, norm):
        return layer_norm(states, norm.weight, norm.bias, norm.eps)
    return F.layer_norm(states, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
