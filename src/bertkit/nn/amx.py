"""Matrix products in bfloat16 on AMX, the matrix unit of some Intel processors (``amx.h``, ``amx_products.c``).

oneDNN, which torch uses, reaches its best speed for few shapes: of the products of a step of BERT-base some run at a
third of it, and those of gradients of weights at half.

Letters: M rows, N columns, K the summed index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from bertkit.nn.fused import call, is_compiled

_SIDE = 32
"""Rows and columns of a block of sums, and the numbers of K in a tile: ``SIDE`` of amx.h."""

_MOST_DEPTH = 48 * _SIDE
"""With a longer K ``multiply`` needs memory for the sums between parts of it: ``DEPTH`` of amx.h."""


def is_available() -> bool:
    """Whether this processor has AMX, the passes are compiled, and the system gives its registers to this process."""
    return is_compiled() and _is_granted()


@cache
def _is_granted() -> bool:
    if not torch.cpu.get_capabilities().get("amx_bf16"):
        return False
    granted = torch.zeros(1, dtype=torch.int32)
    call("request_amx", granted)
    return bool(granted)


def call_on_amx(name: str, *arguments: Tensor | float | None) -> None:
    """Call a compiled function that uses AMX."""
    assert is_available(), "without the system's permission the first instruction ends the process"
    call(name, *arguments)


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The right factor of products, a matrix of (depth, columns), rounded to bfloat16 and laid out for ``multiply``."""

    tiles: UInt8[Tensor, " bytes"]
    depth: int
    columns: int


def pack(matrix: Float[Tensor, "K N"]) -> Packed:
    """``matrix``, in float32 or bfloat16, for ``multiply``; a transposed view needs no copy."""
    depth, columns = matrix.shape
    numbers, is_float32, rows_are_items, stride = _describe(matrix.T)
    tiles = torch.empty(_round_up(depth) * _round_up(columns) * 2, dtype=torch.uint8)
    call_on_amx("pack", numbers, is_float32, rows_are_items, stride, columns, depth, tiles)
    return Packed(tiles, depth, columns)


def multiply(
    left: Float[Tensor, "M K"],
    right: Packed,
    bias: Float[Tensor, " N"] | None = None,
    *,
    residual: Float[Tensor, "M N"] | None = None,
    gelu: bool = False,
    row_totals: Float[Tensor, " M"] | None = None,
    dtype: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "M N"]:
    """``activation(left right + bias) + residual`` in bfloat16 or float32, summed in float32.

    ``left`` is float32 or bfloat16, and is rounded to bfloat16; a transposed view needs no copy. ``bias`` is float32
    and ``residual`` bfloat16. A row of the result does not depend on the other rows, nor on the number of threads.
    """
    rows, columns = len(left), right.columns
    stride = _round_up(columns)  # rows that begin with a line of the cache: whole lines are written much faster
    product = torch.empty(rows, stride, dtype=dtype)[:, :columns]
    sums = torch.empty(_round_up(rows) * _round_up(columns)) if right.depth > _MOST_DEPTH else None
    left, *layout = _describe(left)
    residual = None if residual is None else residual.contiguous()
    call_on_amx(
        "multiply",
        *(left, *layout, right.tiles, bias, residual, gelu),
        *(product, dtype == torch.float32, stride, rows, columns, right.depth, sums, row_totals),
    )
    return product


def _describe(matrix: Float[Tensor, "X K"]) -> tuple[Tensor, bool, bool, int]:
    """The matrix, whether it is float32, whether its rows in memory run over the summed index, and their stride."""
    if 1 not in matrix.stride():
        matrix = matrix.contiguous()
    rows_are_summed = matrix.stride(1) != 1
    return matrix, matrix.dtype == torch.float32, rows_are_summed, matrix.stride(1 if rows_are_summed else 0)


def _round_up(count: int) -> int:
    return -(-count // _SIDE) * _SIDE
