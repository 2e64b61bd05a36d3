"""The position-wise feed-forward network of a Transformer block (Vaswani et al. 2017, section 3.3).

Letters: L tokens, H hidden width, I intermediate width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertkit.kernels import amx
from bertkit.kernels.passes import Context
from bertkit.nn.linear import Linear, find_gradients, is_on_amx


class FeedForward(nn.Module):
    """``outer(activation(inner(x)))``: from H to the intermediate width and back."""

    def __init__(self, *, inner: nn.Linear, activation: nn.Module, outer: nn.Linear) -> None:
        super().__init__()
        self.inner = inner
        self.activation = activation
        self.outer = outer

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each token independently."""
        if self._is_on_amx(states):
            weights = (self.inner.weight, self.inner.bias, self.outer.weight, self.outer.bias)
            new_states: Tensor = _AmxFeedForward.apply(states, *weights)  # type: ignore[no-untyped-call]
        else:
            new_states = self.outer(self.activation(self.inner(states)))
        return new_states

    def _is_on_amx(self, states: Tensor) -> bool:
        """Whether both layers are trained with products on AMX, with the exact GELU between them."""
        return (
            states.requires_grad
            and isinstance(self.inner, Linear)
            and isinstance(self.outer, Linear)
            and isinstance(self.activation, nn.GELU)
            and self.activation.approximate == "none"
            and is_on_amx(states, self.inner.weight, self.inner.bias)
            and self.outer.weight.dtype == torch.float32
        )


class _AmxFeedForward(torch.autograd.Function):
    """Both layers, with GELU and its backward pass inside the products: alone they took 4 % of a step of MiniLM."""

    @staticmethod
    def forward(
        ctx: Context,
        states: Float[Tensor, "L H"],
        inner: Float[Tensor, "I H"],
        inner_bias: Float[Tensor, " I"],
        outer: Float[Tensor, "H I"],
        outer_bias: Float[Tensor, " H"],
    ) -> Float[Tensor, "L H"]:
        ctx.dtype = states.dtype
        states = states.bfloat16()
        before_gelu = amx.new_product(len(states), len(inner))
        activated = amx.multiply(states, amx.pack(inner.T), inner_bias, gelu=True, before_gelu=before_gelu)
        ctx.save_for_backward(states, inner, before_gelu, activated, outer)
        return amx.multiply(activated, amx.pack(outer.T), outer_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, gradient: Float[Tensor, "L H"]) -> tuple[Tensor | None, ...]:
        states, inner, before_gelu, activated, outer = ctx.saved_tensors
        needs_states, *needs = ctx.needs_input_grad
        to_inner = amx.multiply(gradient, amx.pack(outer), slope_at=before_gelu)
        return (
            amx.multiply(to_inner, amx.pack(inner), dtype=ctx.dtype) if needs_states else None,
            *find_gradients(to_inner, states, *needs[:2]),
            *find_gradients(gradient, activated, *needs[2:]),
        )


class GatedFeedForward(nn.Module):
    """``outer(dropout(activation(x) * gate))`` with ``x, gate = inner(states)`` (Shazeer, arXiv 2002.05202).

    ``inner`` maps H to twice the intermediate width I. With GELU this is GeGLU.
    """

    STACKED: ClassVar[Mapping[str, int]] = {"inner": 2}

    def __init__(self, *, inner: nn.Linear, activation: nn.Module, dropout: nn.Module, outer: nn.Linear) -> None:
        super().__init__()
        self.inner = inner
        self.activation = activation
        self.dropout = dropout
        self.outer = outer

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each token independently."""
        values, gate = self.inner(states).chunk(2, dim=-1)
        new_states: Tensor = self.outer(self.dropout(self.activation(values) * gate))
        return new_states
