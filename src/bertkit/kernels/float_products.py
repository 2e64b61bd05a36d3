"""Matrix products in float32 for inference (``float_products.c``), on processors with and without AVX-512.

oneDNN and MKL multiply large matrices as fast. A text alone has few rows, whose product is read from memory: 24 rows of
384 numbers and 1,536 columns take 0.5 ms on one core of a Zen 3, with oneDNN 0.6 and with MKL 0.75.

Letters: M rows, N columns, K the summed index.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.kernels.fused import call

_MOST_COLUMNS = 48
"""Columns of a panel of the widest processors: ``WIDTH`` of float_products.c."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedFloats:
    """The right factor of products, a matrix of (depth, columns), laid out for ``multiply``."""

    panels: Float[Tensor, " numbers"]
    depth: int
    columns: int


def pack(weight: Float[Tensor, "N K"]) -> PackedFloats:
    """The transpose of ``weight`` for ``multiply``; the passes must be compiled."""
    columns, depth = weight.shape
    panels = torch.empty((columns + _MOST_COLUMNS - 1) * depth)
    call("pack_floats", weight.float().contiguous(), panels, columns, depth)
    return PackedFloats(panels, depth, columns)


def multiply(
    left: Float[Tensor, "M K"],
    right: PackedFloats,
    bias: Float[Tensor, " N"] | None = None,
    *,
    residual: Float[Tensor, "M N"] | None = None,
    gelu: bool = False,
) -> Float[Tensor, "M N"]:
    """``activation(left right + bias) + residual`` in float32; ``bias`` is contiguous.

    A row of the result does not depend on the other rows, nor on the number of threads.
    """
    rows, depth = left.shape
    if depth != right.depth:
        raise ValueError(f"a product of {rows} x {depth} and {right.depth} x {right.columns} numbers")
    product = torch.empty(rows, right.columns)
    left = left.float()
    if left.stride(1) != 1:
        left = left.contiguous()
    residual = None if residual is None else residual.float().contiguous()
    call(
        *("multiply_floats", left, left.stride(0), right.panels, bias, residual, gelu),
        *(product, rows, right.columns, depth),
    )
    return product
