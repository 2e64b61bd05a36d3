"""Linear layers as products of 8-bit integers, for inference on a CPU.

Letters: N tokens, K inputs, M outputs, B rows, T tokens of a row, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.kernels.fused import is_compiled
from bertkit.kernels.fused_inference import dequantize_, quantize
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.inference_linear import ALL_ROWS, Activation

_GELU_MINIMUM = 0.1701
"""GELU gives nothing below -0.16998, or -0.17005 in its tanh form, and ReLU nothing below 0, so this much is added
before their output is rounded to 0 to 255."""

_SMOOTHING = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class InputRange:
    """The largest magnitude of each input of a layer, and whether the inputs are the output of an activation."""

    highest: Float[Tensor, " K"]
    after_activation: bool


def calibrate(stack: nn.Module, states: Float[Tensor, "B T H"]) -> Mapping[nn.Linear, InputRange]:
    """The range of the inputs of every linear layer of a ``BlockStack`` in a pass on ``states``, without padding."""
    ranges: dict[nn.Linear, InputRange] = {}
    after_activation = {part.outer for part in stack.modules() if isinstance(part, FeedForward)}

    def record(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(module, nn.Linear)
        # Inputs of another layer may be above that minimum by chance, in this pass alone.
        is_bounded = module in after_activation and bool(inputs[0].amin() > -_GELU_MINIMUM)
        ranges[module] = InputRange(inputs[0].abs().amax(dim=0), is_bounded)

    layers = [module for module in stack.modules() if isinstance(module, nn.Linear)]
    hooks = [layer.register_forward_pre_hook(record) for layer in layers]
    mask = torch.ones(states.shape[:2], dtype=torch.bool)
    stack(states, mask, None, output_hidden_states=False, gradient_checkpointing=False)
    for hook in hooks:
        hook.remove()
    return ranges


class Int8Linear(nn.Module):
    """A linear layer with weights and inputs rounded to 8-bit integers, and sums in 32-bit integers.

    Weights have one scale per output, and inputs one per token, so that the result for a token does not depend on the
    other tokens of the batch. ``inputs`` is their range in a calibration: large inputs are
    divided by a factor and their weights multiplied by it, so that both lose equally by rounding (SmoothQuant, Xiao et
    al., arXiv 2211.10438, equation 4).
    """

    def __init__(
        self,
        linear: nn.Linear,
        activation: Activation = None,
        *,
        rows: slice = ALL_ROWS,
        inputs: InputRange,
    ) -> None:
        super().__init__()
        weight = linear.weight.detach()[rows].float()
        largest = weight.abs().amax(dim=0)
        factor = inputs.highest.clamp(min=1e-3) ** _SMOOTHING / largest.clamp(min=1e-4) ** (1 - _SMOOTHING)
        smoothed = weight * factor
        self.scale = (_find_largest(smoothed) / 127).clamp(min=1e-12)
        rounded = (smoothed / self.scale[:, None]).round()
        self.weight = torch.ops.onednn.qlinear_prepack(rounded.to(torch.int8), None)
        self.weight_zeros = torch.zeros(len(rounded), dtype=torch.int32)
        self.input_factor = 1 / factor
        self.shift, self.zero, self.levels = (_GELU_MINIMUM, 0, 255.0) if inputs.after_activation else (0.0, 128, 127.0)
        # The shift of the inputs is a constant of each output, which the bias takes away again.
        taken = self.shift * (rounded * self.scale[:, None] * self.input_factor).sum(dim=1)
        self.bias = linear.bias.detach()[rows].float() - taken
        self.input_shift = self.shift * self.input_factor
        self.activation = nn.Identity() if activation is None else ACTIVATIONS[activation]()
        self.is_gelu = activation == "gelu"  # the compiled pass applies it

    def forward(
        self, states: Float[Tensor, "N K"], residual: Float[Tensor, "N M"] | None = None
    ) -> Float[Tensor, "N M"]:
        """Each token independently, plus ``residual``, in float32."""
        assert residual is None or isinstance(self.activation, nn.Identity), "see LinearMaker"
        integers, steps = self._quantize(states)
        product = _multiply(integers, self.zero, self.weight, self.scale, self.weight_zeros)
        if is_compiled():
            output: Tensor = dequantize_(product, steps, self.bias, residual, gelu=self.is_gelu)
            return output if self.is_gelu else self.activation(output)
        output = self.activation(torch.addcmul(self.bias, product, steps[:, None]))
        return output if residual is None else output.add_(residual)

    def _quantize(self, states: Float[Tensor, "N K"]) -> tuple[UInt8[Tensor, "N K"], Float[Tensor, " N"]]:
        """The inputs as integers, and the step of each token, as ``fused_inference.quantize``."""
        if is_compiled():
            return quantize(states, self.input_factor, self.input_shift if self.shift else None)
        # In place where it can be: new memory for each step took half of the time of a layer.
        if self.shift:
            scaled = torch.addcmul(self.input_shift, states, self.input_factor)
            largest = scaled.amax(dim=1, keepdim=True)
        else:
            scaled = states * self.input_factor
            largest = torch.maximum(scaled.amax(dim=1, keepdim=True), -scaled.amin(dim=1, keepdim=True))
        steps = largest.clamp_(min=1e-12) / self.levels
        scaled.mul_(1 / steps)
        if not self.zero:
            scaled.sub_(128)
        # PyTorch converts to int8 nine times faster than to uint8; the other sign bit adds 128 again.
        return scaled.round_().to(torch.int8).bitwise_xor_(-128).view(torch.uint8), steps.squeeze(1)


def _find_largest(weight: Float[Tensor, "M K"]) -> Float[Tensor, " M"]:
    """What 127 stands for in each output: its largest weight, or the largest sum of two where products saturate.

    Rounding makes at most 128 of such a sum, and 255 * 128 fits into 16 bits. The largest sum of neighbours with the
    same sign is 1.2 times the largest weight (MiniLM): this costs a quarter of a bit, where 7 bits would cost one.
    """
    largest = weight.abs().amax(dim=1)
    if not _pairs_saturate():
        return largest
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).reshape(len(weight), -1, 2)
    for sign in (1, -1):
        largest = torch.maximum(largest, (sign * pairs).clamp(min=0).sum(dim=2).amax(dim=1))
    return largest


@cache
def _pairs_saturate() -> bool:
    """Whether the processor adds the products of two neighbouring inputs in 16 bits, as x86 does without VNNI."""
    inputs, weight = torch.full((16, 64), 255, dtype=torch.uint8), torch.full((16, 64), 127, dtype=torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(weight, None)
    scale, zeros = torch.ones(16, dtype=torch.float32), torch.zeros(16, dtype=torch.int32)
    sums = [_multiply(inputs[:rows], 0, packed, scale, zeros) for rows in (1, 16)]
    return any(bool((each != 64 * 255 * 127).any()) for each in sums)


def _multiply(
    inputs: UInt8[Tensor, "N K"], zero: int, weight: Tensor, scale: Float[Tensor, " M"], zeros: Int[Tensor, " M"]
) -> Float[Tensor, "N M"]:
    """``(inputs - zero) weight^T * scale`` in float32, for a weight that is prepacked and whose ``zeros`` are 0."""
    product: Tensor = torch.ops.onednn.qlinear_pointwise(
        inputs, 1.0, zero, weight, scale, zeros,
        None, 1.0, 0, torch.float32, "none", [], "",
    )  # fmt: skip
    return product


@dataclass(frozen=True, slots=True)
class Int8Maker:
    """A ``LinearMaker`` of ``Int8Linear``, from the ranges that ``calibrate`` found."""

    ranges: Mapping[nn.Linear, InputRange]

    def __call__(self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS) -> Int8Linear:
        """The layer in 8-bit integers."""
        return Int8Linear(linear, activation, rows=rows, inputs=self.ranges[linear])
