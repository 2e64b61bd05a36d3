"""Linear layers which are trained in bfloat16: products on AMX where the processor has it, and torch's elsewhere.

Letters: L tokens, H inputs, O outputs.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from bertkit.kernels import amx
from bertkit.kernels.fused import new_floats
from bertkit.kernels.passes import Context, is_possible


class Linear(nn.Linear):
    """``torch.nn.Linear``, computed by ``linear``."""

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... O"]:
        """Each token independently."""
        return linear(states, self.weight, self.bias)


def linear(
    states: Float[Tensor, "... H"], weight: Float[Tensor, "O H"], bias: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "... O"]:
    """``states weight^T + bias``, as ``torch.nn.functional.linear``."""
    if is_on_amx(states, weight, bias):
        output: Tensor = _AmxLinear.apply(states, weight, bias)  # type: ignore[no-untyped-call]
        return output
    return F.linear(states, weight, bias)


def is_on_amx(states: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether autocast would compute a product of a list of tokens in bfloat16 on a CPU with AMX.

    What is unusual is left to torch: other formats, shapes that do not fit, nothing to compute, and tracers.
    """
    return (
        type(states) is Tensor
        and states.ndim == 2
        and states.numel() > 0
        and weight.dtype == torch.float32
        and weight.shape[1:] == states.shape[1:]
        and len(weight) > 0
        and (bias is None or (bias.dtype == torch.float32 and bias.shape == weight.shape[:1] and bias.is_contiguous()))
        and states.dtype in (torch.float32, torch.bfloat16)
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and is_possible(states)
        and amx.is_available()
    )


class _AmxLinear(torch.autograd.Function):
    """``linear`` with float32 weights. Their gradient is float32 too, which autocast would round to bfloat16."""

    @staticmethod
    def forward(
        ctx: Context, states: Float[Tensor, "L H"], weight: Float[Tensor, "O H"], bias: Float[Tensor, " O"] | None
    ) -> Float[Tensor, "L O"]:
        ctx.dtype = states.dtype
        states = states.bfloat16()
        ctx.save_for_backward(states, weight)
        return amx.multiply(states, amx.pack(weight.T), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, gradient: Float[Tensor, "L O"]) -> tuple[Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        needs_states, *needs = ctx.needs_input_grad
        to_states = amx.multiply(gradient, amx.pack(weight), dtype=ctx.dtype) if needs_states else None
        return to_states, *find_gradients(gradient, states, *needs)


def find_gradients(
    gradient: Float[Tensor, "L O"], states: Float[Tensor, "L H"], needs_weight: bool, needs_bias: bool
) -> tuple[Float[Tensor, "O H"] | None, Float[Tensor, " O"] | None]:
    """The gradients of weight and bias of a linear layer on AMX, from that of its output and from its inputs."""
    if not needs_weight:
        return None, gradient.sum(0, dtype=torch.float32) if needs_bias else None
    to_bias = new_floats(gradient.shape[1]).zero_() if needs_bias else None
    return amx.multiply(gradient.T, amx.pack(states), row_totals=to_bias, dtype=torch.float32), to_bias
