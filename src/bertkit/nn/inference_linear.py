"""Linear layers for inference: parameters in one number format, on a CPU in the layout of oneDNN or of our products.

Letters: N tokens, K inputs, M outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.kernels import amx, float_products
from bertkit.kernels.fused_inference import CompiledLayer
from bertkit.nn.activation import ACTIVATIONS

Activation = str | None
"""A name of ``ACTIVATIONS``, or None for none."""

ALL_ROWS = slice(None)


@runtime_checkable
class LinearMaker(Protocol):
    """Makes a layer for inference from ``rows`` of a trained one, which are its outputs, and an activation after it."""

    def __call__(self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS) -> nn.Module:
        """The layer, which maps (N, K) to (N, M), and adds a residual (N, M) if it has no activation."""
        ...


def activation_name(activation: nn.Module) -> str:
    """The name in ``ACTIVATIONS`` that made ``activation``."""
    return next(name for name, make in ACTIVATIONS.items() if repr(make()) == repr(activation))


def can_pack(dtype: torch.dtype) -> bool:
    """Whether ``PackedLinear`` can be used: this PyTorch has its operators, and the processor the number format.

    Without AVX-512 oneDNN refuses bfloat16, which torch's own products compute, slowly.
    """
    if not (torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    return dtype != torch.bfloat16 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class PlainLinear(nn.Module):
    """``activation(x W^T + b)`` as PyTorch computes it."""

    def __init__(
        self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.weight = linear.weight.detach()[rows].to(dtype, copy=True)
        self.bias = linear.bias.detach()[rows].to(dtype, copy=True)
        self.activation = nn.Identity() if activation is None else ACTIVATIONS[activation]()

    def forward(
        self, states: Float[Tensor, "N K"], residual: Float[Tensor, "N M"] | None = None
    ) -> Float[Tensor, "N M"]:
        """Each token independently, plus ``residual``."""
        output: Tensor = self.activation(F.linear(states, self.weight, self.bias))
        return output if residual is None else output + residual


class PackedLinear(nn.Module):
    """The same with weights in oneDNN's own layout and the activation applied inside its kernel.

    The operators are those that torch.compile uses on a CPU.
    """

    _KERNEL_ACTIVATIONS: ClassVar[Mapping[Activation, tuple[str, str]]] = {
        None: ("none", ""),
        "gelu": ("gelu", "none"),
        "gelu_tanh": ("gelu", "tanh"),
        "relu": ("relu", ""),
    }

    def __init__(
        self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach()[rows].to(dtype).contiguous())
        self.bias = linear.bias.detach()[rows].to(dtype, copy=True)
        self.kernel_activation, self.variant = self._KERNEL_ACTIVATIONS[activation]

    def forward(
        self, states: Float[Tensor, "N K"], residual: Float[Tensor, "N M"] | None = None
    ) -> Float[Tensor, "N M"]:
        """Each token independently, plus ``residual``."""
        if residual is not None:  # the kernel adds it before it rounds the sum
            added: Tensor = torch.ops.mkldnn._linear_pointwise.binary(states, residual, self.weight, self.bias, "add")
            return added
        output: Tensor = torch.ops.mkldnn._linear_pointwise(
            states, self.weight, self.bias, self.kernel_activation, [], self.variant
        )
        return output


class _Products(Protocol):
    """A module of ``kernels`` that multiplies matrices."""

    def pack(self, matrix: Float[Tensor, "K M"]) -> Any: ...

    def multiply(
        self,
        left: Float[Tensor, "N K"],
        right: Any,
        bias: Float[Tensor, " M"] | None = None,
        *,
        residual: Float[Tensor, "N M"] | None = None,
        gelu: bool = False,
    ) -> Float[Tensor, "N M"]: ...


class _OwnLinear(nn.Module):
    """The same by one of our own products, with weights laid out for it, and GELU and the sum applied in it."""

    products: ClassVar[_Products]

    def __init__(self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS) -> None:
        super().__init__()
        self.weight = self.products.pack(linear.weight.detach()[rows].float().T)
        self.bias = linear.bias.detach()[rows].to(torch.float32, copy=True)
        self.is_gelu = activation == "gelu"
        self.activation = None if activation is None or self.is_gelu else ACTIVATIONS[activation]()

    def forward(
        self, states: Float[Tensor, "N K"], residual: Float[Tensor, "N M"] | None = None
    ) -> Float[Tensor, "N M"]:
        """Each token independently, plus ``residual``."""
        output = self.products.multiply(states, self.weight, self.bias, residual=residual, gelu=self.is_gelu)
        return output if self.activation is None else self.activation(output)


class CompiledLinear(_OwnLinear):
    """In float32."""

    products: ClassVar[_Products] = float_products

    def describe(self) -> CompiledLayer:
        """The layer for ``CompiledBlocks``, without its activation."""
        return CompiledLayer(self.weight, self.bias)


class AmxInferenceLinear(_OwnLinear):
    """In bfloat16 on AMX."""

    products: ClassVar[_Products] = amx
