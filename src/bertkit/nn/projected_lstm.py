"""An LSTM whose output is narrower than its cells, and that keeps both from growing (Sak et al., arXiv 1402.1128).

It is ``LSTMCell`` of TensorFlow 1, which ELMo was trained with, and not torch's: its gates stand in the order input,
new, forget, output, the forget gate is opened by 1 beyond its bias, and cells and outputs are clipped. torch has no
clipping, so the steps are taken here one by one.

Letters: B rows, T steps, I width of the input, H width of the output, C cells, G = 4 C gates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

_FORGET_BIAS = 1.0


class LstmState(NamedTuple):
    """What an LSTM knows between two steps of B rows: its last output (B, H) and its cells, one row each."""

    output: Tensor
    cells: Tensor


class ProjectedLstm(nn.Module):
    """One layer in one direction. ``gates`` reads the input and the last output side by side, ``projection`` the cells.

    ``cell_clip`` and ``output_clip`` are the largest magnitude of a cell and of an output; ``math.inf`` for no bound.
    """

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
        """The output of every real step, 0 elsewhere, and what each row knows after its last real step.

        ``mask`` is true on the real steps, which come first in every row. ``start`` is what the rows know before.
        """
        width = states.shape[2]
        # Of all steps at once: what an input says to the gates waits for no other step.
        read = F.linear(states, self.gates.weight[:, :width], self.gates.bias)
        recall = self.gates.weight[:, width:]
        before = self._zeros(states) if start is None else start
        outputs = []
        for step, real in zip(read.unbind(1), mask.unsqueeze(2).unbind(1), strict=True):
            after = self._step(step + F.linear(before.output, recall), before.cells)
            before = LstmState(*(torch.where(real, new, old) for new, old in zip(after, before, strict=True)))
            outputs.append(before.output)
        return torch.stack(outputs, dim=1).masked_fill(~mask.unsqueeze(2), 0), before

    def _step(self, gates: Float[Tensor, "B G"], cells: Float[Tensor, "B C"]) -> LstmState:
        enter, new, forget, leave = gates.chunk(4, dim=1)
        cells = torch.sigmoid(forget + _FORGET_BIAS) * cells + torch.sigmoid(enter) * torch.tanh(new)
        cells = cells.clamp(-self.cell_clip, self.cell_clip)
        output = self.projection(torch.sigmoid(leave) * torch.tanh(cells))
        return LstmState(output.clamp(-self.output_clip, self.output_clip), cells)

    def _zeros(self, states: Float[Tensor, "B T I"]) -> LstmState:
        output, cells = self.projection.weight.shape
        return LstmState(states.new_zeros(len(states), output), states.new_zeros(len(states), cells))


def reverse_rows(states: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T I"]:
    """The real steps of every row in reverse, and what lies behind them in its place; done twice, it is undone."""
    steps = torch.arange(mask.shape[1], device=mask.device)
    places = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - steps, steps)
    return states.gather(1, places.unsqueeze(2).expand_as(states))
