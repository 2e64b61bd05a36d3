"""Linear layers as products of 8-bit integers, for inference on a CPU.

Letters: N tokens, K inputs, M outputs, B rows, T tokens of a row, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int, Int8, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.kernels import int8_products
from bertkit.kernels.fused import is_compiled
from bertkit.kernels.fused_inference import CompiledLayer
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
        highest = inputs[0].abs().amax(dim=0)
        if (known := ranges.get(module)) is not None:  # layers share it
            highest, is_bounded = known.highest.maximum(highest), known.after_activation and is_bounded
        ranges[module] = InputRange(highest, is_bounded)

    layers = [module for module in stack.modules() if isinstance(module, nn.Linear)]
    hooks = [layer.register_forward_pre_hook(record) for layer in layers]
    mask = torch.ones(states.shape[:2], dtype=torch.bool)
    stack(states, mask, None, output_hidden_states=False, gradient_checkpointing=False)
    for hook in hooks:
        hook.remove()
    return ranges


@dataclass(frozen=True, slots=True, eq=False)
class _Rounding:
    """How the weights and the inputs of a layer are rounded to 8-bit integers.

    Weights have one scale per output, and inputs one per token, so that the result for a token does not depend on the
    other tokens of the batch. Large inputs are divided by a factor and their weights multiplied by it, so that both
    lose equally by rounding (SmoothQuant, Xiao et al., arXiv 2211.10438, equation 4).
    """

    scale: Float[Tensor, " M"]
    bias: Float[Tensor, " M"]
    factor: Float[Tensor, " K"]
    shift: Float[Tensor, " K"] | None
    """Added to inputs that are the output of an activation, before they are rounded to 0 to 255."""

    @staticmethod
    def of(
        linear: nn.Linear, rows: slice, inputs: InputRange, *, in_pairs: bool
    ) -> tuple[Int8[Tensor, "M K"], _Rounding]:
        """The rounded weights of the ``rows`` of ``linear``, and how they and its inputs are rounded.

        ``inputs`` is the range of the inputs in a calibration. For ``in_pairs`` see ``_find_largest``.
        """
        weight, bias = linear.weight.detach()[rows].float(), linear.bias.detach()[rows].float()
        largest = weight.abs().amax(dim=0)
        factor = inputs.highest.clamp(min=1e-3) ** _SMOOTHING / largest.clamp(min=1e-4) ** (1 - _SMOOTHING)
        smoothed = weight * factor
        scale = (_find_largest(smoothed, in_pairs=in_pairs) / 127).clamp(min=1e-12)
        rounded = (smoothed / scale[:, None]).round()
        if not inputs.after_activation:
            return rounded.to(torch.int8), _Rounding(scale, bias.clone(), 1 / factor, None)
        # The shift of the inputs is a constant of each output, which the bias takes away again.
        taken = _GELU_MINIMUM * (rounded * scale[:, None] / factor).sum(dim=1)
        return rounded.to(torch.int8), _Rounding(scale, bias - taken, 1 / factor, _GELU_MINIMUM / factor)


class Int8Linear(nn.Module):
    """A linear layer of rounded weights and inputs, and sums in 32-bit integers, by our own products."""

    def __init__(
        self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS, inputs: InputRange
    ) -> None:
        super().__init__()
        weight, self.rounding = _Rounding.of(linear, rows, inputs, in_pairs=int8_products.pairs_saturate())
        self.weight = int8_products.pack(weight)
        self.is_gelu = activation == "gelu"
        self.activation = None if activation is None or self.is_gelu else ACTIVATIONS[activation]()

    def forward(
        self, states: Float[Tensor, "N K"], residual: Float[Tensor, "N M"] | None = None
    ) -> Float[Tensor, "N M"]:
        """Each token independently, plus ``residual``, in float32."""
        rounding = self.rounding
        output = int8_products.multiply(
            *(states, self.weight, rounding.scale, rounding.bias),
            factor=rounding.factor,
            shift=rounding.shift,
            residual=residual,
            gelu=self.is_gelu,
        )
        return output if self.activation is None else self.activation(output)

    def describe(self) -> CompiledLayer:
        """The layer for ``CompiledBlocks``, without its activation."""
        rounding = self.rounding
        return CompiledLayer(self.weight, rounding.bias, rounding.scale, rounding.factor, rounding.shift)


class PackedInt8Linear(nn.Module):
    """The same by oneDNN, which has products for AMX."""

    def __init__(
        self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS, inputs: InputRange
    ) -> None:
        super().__init__()
        weight, self.rounding = _Rounding.of(linear, rows, inputs, in_pairs=_onednn_saturates())
        self.weight = torch.ops.onednn.qlinear_prepack(weight, None)
        self.weight_zeros = torch.zeros(len(weight), dtype=torch.int32)
        self.zero, self.levels = (128, 127.0) if self.rounding.shift is None else (0, 255.0)
        self.activation = nn.Identity() if activation is None else ACTIVATIONS[activation]()
        self.is_gelu = activation == "gelu"  # the compiled pass applies it

    def forward(
        self, states: Float[Tensor, "N K"], residual: Float[Tensor, "N M"] | None = None
    ) -> Float[Tensor, "N M"]:
        """Each token independently, plus ``residual``, in float32."""
        assert residual is None or isinstance(self.activation, nn.Identity), "see LinearMaker"
        integers, steps = self._quantize(states)
        bias = self.rounding.bias
        product = _multiply(integers, self.zero, self.weight, self.rounding.scale, self.weight_zeros)
        if is_compiled():
            output: Tensor = int8_products.dequantize_(product, steps, bias, residual, gelu=self.is_gelu)
            return output if self.is_gelu else self.activation(output)
        output = self.activation(torch.addcmul(bias, product, steps[:, None]))
        return output if residual is None else output.add_(residual)

    def _quantize(self, states: Float[Tensor, "N K"]) -> tuple[UInt8[Tensor, "N K"], Float[Tensor, " N"]]:
        """The inputs as integers, and the step of each token, as ``int8_products.quantize``."""
        factor, shift = self.rounding.factor, self.rounding.shift
        if is_compiled():
            return int8_products.quantize(states, factor, shift)
        # In place where it can be: new memory for each step took half of the time of a layer.
        if shift is not None:
            scaled = torch.addcmul(shift, states, factor)
            largest = scaled.amax(dim=1, keepdim=True)
        else:
            scaled = states * factor
            largest = torch.maximum(scaled.amax(dim=1, keepdim=True), -scaled.amin(dim=1, keepdim=True))
        steps = largest.clamp_(min=1e-12) / self.levels
        scaled.mul_(1 / steps)
        if not self.zero:
            scaled.sub_(128)
        # PyTorch converts to int8 nine times faster than to uint8; the other sign bit adds 128 again.
        return scaled.round_().to(torch.int8).bitwise_xor_(-128).view(torch.uint8), steps.squeeze(1)


def _find_largest(weight: Float[Tensor, "M K"], *, in_pairs: bool) -> Float[Tensor, " M"]:
    """What 127 stands for in each output: its largest weight, or for ``in_pairs`` the largest sum of two neighbours.

    Rounding makes at most 128 of such a sum, and 255 * 128 fits into 16 bits. The largest sum of neighbours with the
    same sign is 1.2 times the largest weight (MiniLM): this costs a quarter of a bit, where 7 bits would cost one.
    """
    largest = weight.abs().amax(dim=1)
    if not in_pairs:
        return largest
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).reshape(len(weight), -1, 2)
    for sign in (1, -1):
        largest = torch.maximum(largest, (sign * pairs).clamp(min=0).sum(dim=2).amax(dim=1))
    return largest


@cache
def _onednn_saturates() -> bool:
    """As ``int8_products.pairs_saturate``, for the products of oneDNN."""
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
    """A ``LinearMaker`` of layers of one type, from the ranges that ``calibrate`` found."""

    layer: type[Int8Linear] | type[PackedInt8Linear]
    ranges: Mapping[nn.Linear, InputRange]

    def __call__(self, linear: nn.Linear, activation: Activation = None, *, rows: slice = ALL_ROWS) -> nn.Module:
        """The layer in 8-bit integers."""
        return self.layer(linear, activation, rows=rows, inputs=self.ranges[linear])
