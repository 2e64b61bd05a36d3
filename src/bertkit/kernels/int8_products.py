"""Matrix products of 8-bit integers for inference (``int8_products.c``), and the rounding around them.

Inputs are rounded, multiplied and scaled back in one parallel region. 24 rows of 1,536 numbers times 384 columns, whose
weights are read from memory, take 0.26 ms on one core of a Zen 3, and 0.51 with oneDNN's product and passes around it.

Letters: N tokens, K inputs, M outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int, Int8, UInt8
from torch import Tensor

from bertkit.kernels.fused import MOST_COLUMNS, call, in_rows, new_floats

_MOST_NEIGHBOURS = 4
"""Inputs that are multiplied at once, at most: ``GROUP`` of int8_products.c."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedIntegers:
    """Weights of 8-bit integers, (outputs, inputs), laid out for ``multiply``; ``depth`` is the number of inputs."""

    panels: Int8[Tensor, " numbers"]
    sums: Int[Tensor, " M"]
    """The sum of the weights of each output."""
    depth: int


def pack(weight: Int8[Tensor, "M K"]) -> PackedIntegers:
    """``weight`` for ``multiply``. The passes must be compiled."""
    outputs, depth = weight.shape
    room = (outputs + MOST_COLUMNS - 1) * (depth + _MOST_NEIGHBOURS - 1)
    panels = torch.empty(room, dtype=torch.int8, device="cpu")
    call("pack_int8", weight.contiguous(), panels, outputs, depth)
    return PackedIntegers(panels, weight.sum(dim=1, dtype=torch.int32), depth)


def multiply(
    states: Float[Tensor, "N K"],
    weight: PackedIntegers,
    scale: Float[Tensor, " M"],
    bias: Float[Tensor, " M"],
    *,
    factor: Float[Tensor, " K"],
    shift: Float[Tensor, " K"] | None = None,
    residual: Float[Tensor, "N M"] | None = None,
    gelu: bool = False,
) -> Float[Tensor, "N M"]:
    """``activation((states * factor + shift) weight^T * scale + bias) + residual``, in float32.

    The first factor is rounded as by ``quantize``. A row of the result does not depend on the other rows, nor on the
    number of threads. Where ``pairs_saturate``, no two neighbouring weights may have a sum beyond -128 to 128.
    """
    if states.shape[1] != weight.depth:
        raise ValueError(f"{states.shape[1]} inputs for the weights of {weight.depth}")
    product = new_floats(len(states), len(scale))
    if product.numel() == 0:
        return product
    states = in_rows(states)
    residual = None if residual is None else residual.float().contiguous()
    call(
        *("multiply_int8", states, states.stride(0), factor, shift, weight.panels, weight.sums, scale, bias, residual),
        *(gelu, product, *product.shape, weight.depth),
    )
    return product


@cache
def pairs_saturate() -> bool:
    """Whether the processor adds the products of two neighbouring inputs in 16 bits, as x86 does without VNNI."""
    ones = torch.ones(64, dtype=torch.float32, device="cpu")
    zeros = torch.zeros_like(ones)
    weight = pack(torch.full((1, 64), 127, dtype=torch.int8, device="cpu"))
    product = multiply(255 * ones[None], weight, ones[:1], zeros[:1], factor=ones, shift=zeros)
    return float(product) != 64 * 255 * 127


def quantize(
    states: Float[Tensor, "N K"], factor: Float[Tensor, " K"], shift: Float[Tensor, " K"] | None
) -> tuple[UInt8[Tensor, "N K"], Float[Tensor, " N"]]:
    """``states * factor + shift`` as integers, and the step from one integer to the next, per token.

    With a ``shift`` integers go from 0 to 255, and nothing may be negative; without it 128 is zero.
    """
    states = states.contiguous()
    integers, steps = torch.empty_like(states, dtype=torch.uint8), new_floats(len(states))
    call("quantize", states, factor, shift, integers, steps, *states.shape)
    return integers, steps


def dequantize_(
    product: Float[Tensor, "N M"],
    steps: Float[Tensor, " N"],
    bias: Float[Tensor, " M"],
    residual: Float[Tensor, "N M"] | None,
    *,
    gelu: bool,
) -> Float[Tensor, "N M"]:
    """``product * step + bias`` in place, then its erf GELU or plus ``residual``, which exclude one another."""
    residual = None if residual is None else residual.contiguous()
    call("dequantize", product, steps, bias, residual, int(gelu), *product.shape)
    return product
