"""The compiled passes of inference (``fused_inference.c``).

Letters: B texts, N queries of all texts, or tokens, L tokens of all texts, H hidden width, K inputs and M outputs of a
linear layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.kernels.float_products import PackedFloats
from bertkit.kernels.fused import FORMATS, call, is_compiled, new_floats
from bertkit.kernels.int8_products import PackedIntegers

_LONGEST = 48
"""Tokens of the longest text for ``attend_rows``. Heads 32 wide take 0.42 times as long as with torch for 25 tokens and
1.13 times for 64 (bfloat16, one thread of an Intel Xeon with AMX); the limit lies between."""

_LONGEST_TOGETHER = 192
"""The same for ``CompiledBlocks`` where each thread has a text at least. MiniLM on texts of 60, 120, 180 and 250 tokens
is 1.13, 1.12, 1.03 and 1.01 times as fast as with torch's attention in float32, and 1.15, 1.08, 1.09 and 0.97 times in
int8 (a busy Zen 3)."""


def can_attend(length: int, size: int, dtype: torch.dtype, *, longest: int = _LONGEST) -> bool:
    """Whether ``attend_rows`` can be used, and is faster, for texts of ``length`` tokens and heads ``size`` wide."""
    return length <= longest and size % 4 == 0 and dtype in FORMATS and is_compiled()


def can_normalize(states: Tensor, norm: nn.LayerNorm) -> bool:
    """Whether ``layer_norm`` can be used: weight and bias are float32, as in every loaded model."""
    return states.dtype in FORMATS and norm.weight.dtype == torch.float32 and norm.bias is not None and is_compiled()


def attend_rows(
    query: Float[Tensor, "N H"],
    key: Float[Tensor, "L H"],
    value: Float[Tensor, "L H"],
    out: Float[Tensor, "N H"],
    *,
    rows: int,
    heads: int,
) -> None:
    """Fill ``out`` with the attention of each query to all tokens of its text; the ``rows`` texts are equally long.

    The inputs may be columns of a wider list: only their last dimension must be contiguous.
    """
    queries, length, size = len(query) // rows, len(key) // rows, out.shape[1] // heads
    is_bfloat16 = int(out.dtype == torch.bfloat16)
    strides = (query.stride(0), key.stride(0))
    call("attend_rows", query, key, value, out, is_bfloat16, rows, queries, length, heads, size, *strides)


def layer_norm(
    states: Float[Tensor, "N H"], weight: Float[Tensor, " H"], bias: Float[Tensor, " H"], eps: float
) -> Float[Tensor, "N H"]:
    """LayerNorm of each token, in the format of ``states``; see ``can_normalize``."""
    states = states.contiguous()
    out = torch.empty_like(states)
    call("layer_norm", states, weight, bias, out, int(states.dtype == torch.bfloat16), *states.shape, eps)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class CompiledLayer:
    """A linear layer of ``CompiledBlocks``; the last three are those of ``int8_products.multiply``."""

    weight: PackedFloats | PackedIntegers
    bias: Float[Tensor, " M"]
    scale: Float[Tensor, " M"] | None = None
    factor: Float[Tensor, " K"] | None = None
    shift: Float[Tensor, " K"] | None = None

    def fields(self) -> list[int]:
        """``Layer`` of fused_inference.c."""
        sums = self.weight.sums if isinstance(self.weight, PackedIntegers) else None
        tensors = (self.weight.panels, self.bias, sums, self.scale, self.factor, self.shift)
        return [*map(_address, tensors), len(self.bias), self.weight.depth]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledBlock:
    """A block of BERT in float32 or 8-bit integers, with a GELU: the layers qkv, output, inner and outer, and the norms
    of attention and of the feed-forward layer."""

    layers: Sequence[CompiledLayer]
    norms: Sequence[nn.LayerNorm]
    heads: int

    def fields(self) -> list[int]:
        """``Block`` of fused_inference.c."""
        fields = [field for layer in self.layers for field in layer.fields()]
        return [*fields, *(_address(each) for norm in self.norms for each in (norm.weight, norm.bias)), self.heads]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledBlocks:
    """Blocks that are computed by one call.

    It takes the place of seven per block, each of which takes 30 µs in Python on a Zen 3 at 2.4 GHz: together a fifth
    of the time of a text alone.
    """

    fields: Int[Tensor, "blocks fields"]
    """Addresses, which are valid as long as the tensors of the layers exist."""
    eps: float

    @staticmethod
    def of(blocks: Sequence[CompiledBlock]) -> CompiledBlocks | None:
        """The blocks, which are of one size, or None if the C code cannot have their norms."""
        norms = [norm for block in blocks for norm in block.norms]
        eps = norms[0].eps
        if not all(norm.eps == eps and _is_plain(norm.weight) and _is_plain(norm.bias) for norm in norms):
            return None
        fields = torch.tensor([block.fields() for block in blocks], dtype=torch.int64, device="cpu")
        return CompiledBlocks(fields, eps)

    @staticmethod
    def can_run(texts: int, length: int, size: int) -> bool:
        """Whether ``run`` can be used, and is faster, for texts of up to ``length`` tokens and heads ``size`` wide."""
        longest = _LONGEST if texts < torch.get_num_threads() else _LONGEST_TOGETHER
        return can_attend(length, size, torch.float32, longest=longest)

    def run(self, tokens: Float[Tensor, "N H"], lengths: Int[Tensor, " B"], blocks: int) -> Float[Tensor, "N H"]:
        """The output of the first ``blocks`` blocks, at least one, for all tokens of texts with these ``lengths``."""
        tokens, out = tokens.contiguous(), new_floats(*tokens.shape)
        call("run_blocks", self.fields, blocks, tokens, out, lengths, len(lengths), len(tokens), self.eps)
        return out


def _is_plain(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == torch.float32 and tensor.is_contiguous()


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
