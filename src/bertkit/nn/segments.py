"""The two texts of a row, each laid out by itself, for networks that read them apart and then side by side.

Which tokens are in a part is decided on the host; states are then taken and put back wherever they are.

Letters: B rows, T tokens of the longest row, S tokens of the longest part, N tokens in all parts, W any width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.nn.packing import PackedRows


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some tokens of every row, in their order, in rows of their own.

    ``origin`` is where the tokens stand in the rows they were taken from, ``own`` where they stand in the part's own.
    ``real`` is True where the part has a token and stays on the host; ``mask`` is the same beside the states.
    """

    origin: PackedRows
    own: PackedRows
    real: Bool[Tensor, "B S"]
    mask: Bool[Tensor, "B S"]

    def to(self, device: torch.device) -> Part:
        """The same part of states on ``device``."""
        mask = self.mask.to(device, non_blocking=True)
        return replace(self, origin=self.origin.to(device), own=self.own.to(device), mask=mask)

    def take(self, states: Float[Tensor, "B T W"]) -> Float[Tensor, "B S W"]:
        """The states of its tokens, with zeros where a row has fewer."""
        return self.own.pad(self.origin.unpad(states))

    def put(self, states: Float[Tensor, "B S W"]) -> Float[Tensor, "B T W"]:
        """The other way round: its tokens where they stand in the whole rows, and zeros elsewhere."""
        return self.origin.pad(self.own.unpad(states))

    @staticmethod
    def of(chosen: Bool[Tensor, "B T"]) -> Part:
        """The part with the ``chosen`` tokens, which are told on the host. It has a place even where no row has any."""
        lengths = chosen.sum(dim=1)
        real = torch.arange(max(1, int(lengths.max()))) < lengths[:, None]
        return Part(_lay_out(chosen), _lay_out(real), real, real)


def split_segments(segment_ids: Int[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> tuple[Part, Part]:
    """The first text of every row and the second, both on the host. Of a row with one text the second has nothing."""
    return Part.of(real & (segment_ids == 0)), Part.of(real & (segment_ids == 1))


def count_pairs(first: Part, second: Part) -> int:
    """How many pairs there are of a token of the one and a token of the other, row by row."""
    return int((first.real.sum(dim=1) * second.real.sum(dim=1)).sum())


def _lay_out(filled: Bool[Tensor, "B S"]) -> PackedRows:
    rows, width = filled.shape
    return PackedRows(rows, width, None if filled.all() else filled.flatten().nonzero().squeeze(1))
