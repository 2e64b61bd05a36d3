"""When training uses hand-written forward and backward passes, and the types that they share.

On a CPU dropout, attention, cross-entropy, residual sums with LayerNorm and linear layers have one each: there torch
draws dropout masks on one thread, has no attention kernel with dropout, and makes float32 copies of all logits (numbers
in each module). Which of them are compiled is another question: see ``fused_training.supports``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

if TYPE_CHECKING:

    class Context(FunctionCtx):
        """The ``ctx`` of a ``torch.autograd.Function``. torch makes its class at run time, so only mypy sees this one.

        The fields are what some forward passes keep for their backward pass besides tensors.
        """

        saved_tensors: tuple[Tensor, ...]
        scale: float
        size: int
        mask: DropMask | None
        heads: Any
        dtype: torch.dtype
        needs_input_grad: tuple[bool, ...]

        def save_for_backward(self, *tensors: Tensor | None) -> None:
            """Keep ``tensors`` as ``saved_tensors``; None stays None."""
else:
    Context = FunctionCtx


@dataclass(frozen=True, slots=True)
class DropMask:
    """Which entries are dropped: entry i by 16 bits of a hash of ``start + i // 4``, if they are below ``lowest``.

    Kept entries are multiplied by ``scale``. ``nn/dropout.py`` makes such masks.
    """

    start: int
    lowest: int
    scale: float


def trains_on_cpu(states: Tensor) -> bool:
    """Whether such a pass ``is_possible`` and a gradient will be needed: inference gains nothing from them."""
    return states.requires_grad and is_possible(states)


def is_possible(states: Tensor) -> bool:
    """On a CPU, and not while torch.compile or an exporter traces the model, which cannot look into such a pass."""
    is_traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return states.device.type == "cpu" and not is_traced
