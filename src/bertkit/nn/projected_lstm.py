"""An LSTM with a projection of its output and with clipping (Sak et al., arXiv 1402.1128), as used by ELMo.

    i, g, f, o = gates([x_t; h_t-1])
    c_t = clip(sigmoid(f + 1) * c_t-1 + sigmoid(i) * tanh(g))
    h_t = clip(projection(sigmoid(o) * tanh(c_t)))

This is ``LSTMCell`` of TensorFlow 1, which ELMo was trained with. It differs from torch's in the order of the gates, in
the 1 added to the forget gate, and in the clipping. torch has no clipping, so there is a Python loop over the steps.

Letters: B rows, T steps, I width of the input, H width of the output, C cells, G = 4 C gates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

_FORGET_BIAS = 1.0


class LstmState(NamedTuple):
    """The recurrent state of B rows: the last output (B, H) and the cells (B, C)."""

    output: Tensor
    cells: Tensor


class ProjectedLstm(nn.Module):
    """One layer in one direction. ``gates`` maps I + H to 4 C, ``projection`` maps C to H.

    ``cell_clip`` and ``output_clip`` bound the magnitude of the cells and the output; ``math.inf`` means no bound.
    """

    STACKED: ClassVar[Mapping[str, int]] = {"gates": 4}

    def __init__(self, *, gates: nn.Linear, projection: nn.Linear, cell_clip: float, output_clip: float) -> None:
        super().__init__()
        assert gates.out_features == 4 * projection.in_features, "four gates for every cell"
        self.gates = gates
        self.projection = projection
        self.cell_clip = cell_clip
        self.output_clip = output_clip

    def forward(
        self, states: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"], start: LstmState | None = None
    ) -> tuple[Float[Tensor, "B T H"], LstmState]:
        """The output of every real step (0 on padding), and the state of each row after its last real step.

        ``mask`` is True on the real steps, which come first in every row. ``start`` is the initial state, by default 0.
        """
        width = states.shape[2]
        # The input part of the gates needs no earlier step, so it is one product for all steps.
        from_input = F.linear(states, self.gates.weight[:, :width], self.gates.bias)
        recurrent_weight = self.gates.weight[:, width:]
        before = self._zeros(states) if start is None else start
        outputs = []
        for step, real in zip(from_input.unbind(1), mask.unsqueeze(2).unbind(1), strict=True):
            after = self._step(step + F.linear(before.output, recurrent_weight), before.cells)
            # On padding the state stays, so the final state of a row is that of its last real step.
            before = LstmState(*(torch.where(real, new, old) for new, old in zip(after, before, strict=True)))
            outputs.append(before.output)
        return torch.stack(outputs, dim=1).masked_fill(~mask.unsqueeze(2), 0), before

    def _step(self, gates: Float[Tensor, "B G"], cells: Float[Tensor, "B C"]) -> LstmState:
        input_gate, new, forget_gate, output_gate = gates.chunk(4, dim=1)
        cells = torch.sigmoid(forget_gate + _FORGET_BIAS) * cells + torch.sigmoid(input_gate) * torch.tanh(new)
        cells = cells.clamp(-self.cell_clip, self.cell_clip)
        output = self.projection(torch.sigmoid(output_gate) * torch.tanh(cells))
        return LstmState(output.clamp(-self.output_clip, self.output_clip), cells)

    def _zeros(self, states: Float[Tensor, "B T I"]) -> LstmState:
        """The state before the first step, in float32 also where the products are in bfloat16: cells are sums."""
        sizes = self.projection.weight.shape
        dtype = torch.promote_types(states.dtype, torch.float32)
        return LstmState(*(states.new_zeros(len(states), size, dtype=dtype) for size in sizes))


def reverse_rows(states: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T I"]:
    """``states`` with the real steps of every row reversed and the padding in place; its own inverse."""
    steps = torch.arange(mask.shape[1], device=mask.device)
    columns = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - steps, steps)
    return states.gather(1, columns.unsqueeze(2).expand_as(states))
