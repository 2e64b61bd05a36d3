"""Models made ready for predictions, with the fastest backend of this machine.

A backend computes the products of the network: PyTorch's own products, oneDNN's with weights in its own layout, or our
own, compiled in float32 and int8 and on AMX in bfloat16. The precision that the user allows and the processor decide
which backends are possible. If there are several, one block of the model's size is timed with each, once per machine,
for a text alone and for a batch; the fastest is remembered in a file.

BERT and RoBERTa on a CPU have these backends. Other encoders, and any encoder on a GPU, run as in training.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.encoder_types.transformer import Transformer, build_post_norm_block
from bertkit.errors import usage_error
from bertkit.inference.backend_cache import BackendCache
from bertkit.kernels import amx
from bertkit.kernels.fused import is_compiled
from bertkit.machine.memory import disable_malloc_trim
from bertkit.machine.precision import Precision, choose_precision
from bertkit.nn.inference_linear import (
    AmxInferenceLinear,
    CompiledLinear,
    LinearMaker,
    PackedLinear,
    PlainLinear,
    can_pack,
)
from bertkit.nn.inference_stack import InferenceStack, is_supported
from bertkit.nn.int8_linear import Int8Linear, Int8Maker, PackedInt8Linear, calibrate
from bertkit.nn.stack import BlockStack
from bertkit.options.job import InferencePrecision

Backend = Literal["PyTorch", "oneDNN", "compiled", "AMX"]
ResolvedPrecision = Literal["float32", "bfloat16", "int8"]

BACKENDS: Mapping[ResolvedPrecision, tuple[Backend, ...]] = {
    "float32": ("PyTorch", "oneDNN", "compiled"),
    "bfloat16": ("PyTorch", "oneDNN", "AMX"),
    "int8": ("oneDNN", "compiled"),
}


def possible_backends(precision: ResolvedPrecision) -> tuple[Backend, ...]:
    """The backends of this machine and of this PyTorch; none for int8 without a compiler and oneDNN."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    possible: Mapping[Backend, bool] = {
        "PyTorch": True,
        "oneDNN": can_pack(dtype),
        "compiled": is_compiled(),
        "AMX": amx.is_available(),
    }
    return tuple(each for each in BACKENDS[precision] if possible[each])


_MEASURED_SHAPES = ((1, 24), (4, 32))
"""Rows and tokens of a row that are timed: a text alone, for which PyTorch's own product lays out the weights each
time, and a batch."""
_ROUNDS = 5
_CALIBRATION_SHAPE = (16, 32)


@dataclass(frozen=True, slots=True)
class Runtime:
    """How models are computed: the number format of the products in their blocks, and the backend.

    ``backend`` is None for encoders without backends of their own; they run as in training.
    """

    precision: ResolvedPrecision
    backend: Backend | None

    @staticmethod
    def choose(
        encoders: Sequence[nn.Module],
        precision: InferencePrecision,
        device: torch.device,
        *,
        cache: BackendCache | None = None,
    ) -> Runtime:
        """The runtime for models with these encoders, whose weights may be on the meta device: only sizes are used.

        ``auto`` is the fastest of all precisions; any other precision is kept, however slow it is.
        """
        encoder = encoders[0]
        if device.type != "cpu" or not isinstance(encoder, Transformer) or not all(map(_is_supported, encoders)):
            if precision == "int8":
                raise usage_error("precision int8 is for BERT and RoBERTa on a CPU: use float32 or bfloat16.")
            return Runtime(choose_precision(device) if precision == "auto" else precision, None)
        precisions = BACKENDS if precision == "auto" else (precision,)
        candidates = {f"{name} {each}": Runtime(name, each) for name in precisions for each in possible_backends(name)}
        if not candidates:
            raise usage_error("int8 needs a C compiler (cc) or a PyTorch with oneDNN: use float32 or bfloat16.")
        if len(candidates) == 1:
            return next(iter(candidates.values()))
        cache = cache or BackendCache.of_user()
        config = encoder.config
        sizes = f"{config.hidden_size}/{config.num_heads}/{config.intermediate_size}"
        key = f"{sizes}, alone and in batches: {', '.join(candidates)}"
        found = cache.find(key)
        if found not in candidates:
            seconds = measure(encoder, candidates.values())
            found = min(candidates, key=lambda name: seconds[candidates[name]])
            cache.remember(key, found)
        return candidates[found]

    @property
    def name(self) -> str:
        """Precision and backend, such as "float32 (oneDNN)"."""
        return self.precision if self.backend is None else f"{self.precision} ({self.backend})"

    @property
    def autocast_precision(self) -> Precision:
        """The precision that is left to autocast: prepared models need none."""
        return "float32" if self.backend is not None or self.precision == "int8" else self.precision

    @property
    def copies(self) -> bool:
        """Whether ``prepare`` makes a copy that shares nothing with the model."""
        return self.backend is not None

    def prepare(self, model: nn.Module) -> nn.Module:
        """``model`` for predictions: a copy in which blocks are replaced, or itself without a backend."""
        model.eval()  # before the calibration: dropout must not change the ranges of inputs
        if not self.copies:
            return model
        disable_malloc_trim()  # a fifth of the time of int8 was page faults
        replaced: dict[int, Any] = {}
        for part in model.modules():
            if isinstance(part, Transformer):
                replaced[id(part.layers)] = self.convert(part.layers, partial(_embed_random_tokens, part))
        prepared: nn.Module = copy.deepcopy(model, replaced)  # it takes from the memo what is there, by its id
        return prepared.eval()

    @torch.no_grad()
    def convert(self, stack: BlockStack, calibration: Callable[[], Float[Tensor, "B T H"]]) -> InferenceStack:
        """The blocks of ``stack`` with this backend; the range of 8-bit integers is measured on ``calibration()``."""
        if self.precision == "int8":
            layer = Int8Linear if self.backend == "compiled" else PackedInt8Linear
            return InferenceStack(stack, Int8Maker(layer, calibrate(stack, calibration())), dtype=torch.float32)
        dtype = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        makers: Mapping[Backend | None, LinearMaker] = {
            "AMX": AmxInferenceLinear,
            "compiled": CompiledLinear,
            "oneDNN": partial(PackedLinear, dtype=dtype),
            "PyTorch": partial(PlainLinear, dtype=dtype),
        }
        return InferenceStack(stack, makers[self.backend], dtype=dtype)


@torch.inference_mode()
def measure(encoder: Transformer, runtimes: Iterable[Runtime]) -> dict[Runtime, float]:
    """Seconds per token of one block with the sizes of ``encoder`` and random weights.

    It is the sum over ``_MEASURED_SHAPES`` of the best of several rounds, in which the runtimes take turns.
    """
    config = encoder.config
    generator = torch.Generator().manual_seed(0)
    stack = BlockStack([build_post_norm_block(config)]).eval()
    for parameter in stack.parameters():
        parameter.normal_(0, config.initializer_range, generator=generator)
    batches = [torch.randn(*shape, config.hidden_size, generator=generator) for shape in _MEASURED_SHAPES]
    stacks = {runtime: runtime.convert(stack, lambda: batches[-1]) for runtime in runtimes}
    seconds = dict.fromkeys(stacks, 0.0)
    for states in batches:
        mask = torch.ones(states.shape[:2], dtype=torch.bool)
        best = dict.fromkeys(stacks, float("inf"))
        for number in range(1 + _ROUNDS):
            for runtime, converted in stacks.items():
                begin = time.perf_counter()
                converted(states, mask, None, output_hidden_states=False)
                if number:  # the first pass compiles kernels
                    best[runtime] = min(best[runtime], time.perf_counter() - begin)
        for runtime, found in best.items():
            seconds[runtime] += found / mask.numel()
    return seconds


def _is_supported(encoder: nn.Module) -> bool:
    return isinstance(encoder, Transformer) and is_supported(encoder.layers)


def _embed_random_tokens(encoder: Transformer) -> Float[Tensor, "B T H"]:
    """Rows of random tokens as the blocks of ``encoder`` receive them; always the same ones."""
    rows, tokens = _CALIBRATION_SHAPE
    generator = torch.Generator().manual_seed(0)
    tokens = min(tokens, encoder.config.max_positions)
    ids = torch.randint(encoder.token_embedding.num_embeddings, (rows, tokens), generator=generator)
    real = torch.ones_like(ids, dtype=torch.bool)
    return encoder.embed(Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=real, labels={}))
