"""Matrix products in bfloat16 on AMX, the matrix unit of some Intel processors (``amx.h``, ``amx_products.c``).

oneDNN, which torch uses, reaches its best speed for few shapes: of the products of a step of BERT-base some run at a
third of it, and those of gradients of weights at half.

Letters: M rows, N columns, K the summed index, X any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from bertkit.kernels.fused import call, is_compiled, new_floats

_SIDE = 32
"""Rows and columns of a block of sums, and the numbers of K in a tile: ``SIDE`` of amx.h."""

_MOST_DEPTH = 48 * _SIDE
"""With a longer K ``multiply`` needs memory for the sums between parts of it: ``DEPTH`` of amx.h."""


def is_available() -> bool:
    """Whether this processor has AMX, the passes are compiled, and the system gives its registers to this process."""
    return is_compiled() and _permission() > 0


def explain() -> str:
    """What computes products in bfloat16 on this machine, for the user."""
    if not has_amx():
        return "by torch; this processor has no AMX"
    if not is_compiled():
        return "by torch; with a C compiler bertkit's own kernels for AMX are faster"
    if _permission() < 0:
        return "by torch, because the C compiler does not know AMX; GCC 11 and later do"
    if _permission() == 0:
        return "by torch, because the system does not let this process use AMX"
    return "in bfloat16 by bertkit's own kernels for AMX"


def has_amx() -> bool:
    """Whether this processor multiplies bfloat16 numbers on AMX."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


@cache
def _permission() -> int:
    """Whether the system lets this process use AMX: 1 yes, 0 no, -1 if the compiled file has no code for AMX."""
    if not has_amx():
        return 0
    granted = torch.zeros(1, dtype=torch.int32, device="cpu")
    call("request_amx", granted)
    return int(granted)


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
    numbers, is_float32, rows_are_summed, stride = _describe(matrix.T)
    tiles = torch.empty(round_up_to_tiles(depth) * round_up_to_tiles(columns) * 2, dtype=torch.uint8, device="cpu")
    call_on_amx("pack", numbers, is_float32, rows_are_summed, stride, columns, depth, tiles)
    return Packed(tiles, depth, columns)


def multiply(
    left: Float[Tensor, "M K"],
    right: Packed,
    bias: Float[Tensor, " N"] | None = None,
    *,
    residual: Float[Tensor, "M N"] | None = None,
    gelu: bool = False,
    before_gelu: Float[Tensor, "M N"] | None = None,
    slope_at: Float[Tensor, "M N"] | None = None,
    row_totals: Float[Tensor, " M"] | None = None,
    dtype: torch.dtype = torch.bfloat16,
) -> Float[Tensor, "M N"]:
    """``activation(left right + bias) + residual`` in bfloat16 or float32, summed in float32.

    ``left`` is rounded to bfloat16; a transposed view needs no copy. ``bias`` is float32 and contiguous. The sums
    of the rows of ``left`` are added to ``row_totals``, which is float32. A row of the result does not depend on the
    other rows, nor on the number of threads.

    For training, ``before_gelu`` receives what GELU is applied to, and the result is multiplied by the slope of GELU at
    ``slope_at``; both are of ``new_product``.
    """
    rows, columns = len(left), right.columns
    if left.shape[1] != right.depth or right.depth == 0:
        raise ValueError(f"a product of {rows} x {left.shape[1]} and {right.depth} x {columns} numbers")
    product = new_product(rows, columns, dtype)
    if product.numel() == 0:
        return product
    stride = product.stride(0)
    sums = new_floats(round_up_to_tiles(rows) * stride) if right.depth > _MOST_DEPTH else None
    left, is_float32, rows_are_summed, left_stride = _describe(left)
    if row_totals is not None and not rows_are_summed:
        row_totals += left.sum(dim=1, dtype=torch.float32)
        row_totals = None
    residual = None if residual is None else residual.bfloat16().contiguous()
    call_on_amx(
        "multiply",
        *(left, is_float32, rows_are_summed, left_stride, right.tiles, bias, residual, gelu, before_gelu, slope_at),
        *(product, dtype == torch.float32, stride, rows, columns, right.depth, sums, row_totals),
    )
    return product


def new_product(rows: int, columns: int, dtype: torch.dtype = torch.bfloat16) -> Float[Tensor, "{rows} {columns}"]:
    """Memory for a product. Its rows begin with a line of the cache: whole lines are written much faster."""
    product = torch.empty(rows, round_up_to_tiles(columns), dtype=dtype, device="cpu")
    return product if product.shape[1] == columns else product[:, :columns]


def _describe(matrix: Float[Tensor, "X K"]) -> tuple[Tensor, bool, bool, int]:
    """The matrix, whether it is float32, whether its rows in memory run over the summed index, and their stride."""
    if matrix.dtype not in (torch.float32, torch.bfloat16):
        matrix = matrix.float()
    strides = matrix.stride()
    if 1 not in strides:
        matrix = matrix.contiguous()
        strides = matrix.stride()
    rows_are_summed = strides[1] != 1
    return matrix, matrix.dtype == torch.float32, rows_are_summed, strides[1 if rows_are_summed else 0]


def round_up_to_tiles(count: int) -> int:
    """``count`` rows, columns or numbers of K, with those that fill the last tiles."""
    return -(-count // _SIDE) * _SIDE
