"""Matrix products in float32 for inference (``float_products.c``), on processors with and without AVX-512.

A text alone has few rows, and the time goes to the weights, which are read from memory: 24 rows of 384 numbers times
1,536 columns take 0.38 ms on one core of a Zen 3, with oneDNN 0.52 and with MKL 0.67. Batches are 1 to 15 % faster.

Letters: M rows, N columns, K the summed index.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from bertkit.kernels.fused import MOST_COLUMNS, call, in_rows, new_floats


@dataclass(frozen=True, slots=True, eq=False)
class PackedFloats:
    """The right factor of products, a matrix of (depth, columns), laid out for ``multiply``."""

    panels: Float[Tensor, " numbers"]
    depth: int
    columns: int


def pack(matrix: Float[Tensor, "K N"]) -> PackedFloats:
    """``matrix`` for ``multiply``; a transposed view needs no copy. The passes must be compiled."""
    depth, columns = matrix.shape
    panels = new_floats((columns + MOST_COLUMNS - 1) * depth)
    call("pack_floats", matrix.T.float().contiguous(), panels, columns, depth)
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
    product = new_floats(rows, right.columns)
    if product.numel() == 0:
        return product
    left = in_rows(left)
    residual = None if residual is None else residual.float().contiguous()
    call(
        *("multiply_floats", left, left.stride(0), right.panels, bias, residual, gelu),
        *(product, rows, right.columns, depth),
    )
    return product
