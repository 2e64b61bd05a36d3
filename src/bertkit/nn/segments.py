"""The two texts of a row as separate batches, for networks that encode each text on its own and then compare them.

Which tokens belong to a part is computed on the host; the states may be on any device.

Letters: B rows, T tokens of the longest row, S tokens of the longest part, W any width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.nn.packing import PackedRows


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some tokens of every row, in order, as a padded batch of their own.

    ``origin`` is their layout in the rows that they come from, ``own`` their layout in the part. ``real`` is True where
    the part has a token, and stays on the host; ``mask`` is the same on the device of the states.
    """

    origin: PackedRows
    own: PackedRows
    real: Bool[Tensor, "B S"]
    mask: Bool[Tensor, "B S"]

    def to(self, device: torch.device) -> Part:
        """The same part for states on ``device``."""
        mask = self.mask.to(device, non_blocking=True)
        return replace(self, origin=self.origin.to(device), own=self.own.to(device), mask=mask)

    def take(self, states: Float[Tensor, "B T W"]) -> Float[Tensor, "B S W"]:
        """The states of the part's tokens, padded with zeros."""
        return self.own.pad(self.origin.unpad(states))

    def put(self, states: Float[Tensor, "B S W"]) -> Float[Tensor, "B T W"]:
        """The inverse of ``take``: the tokens at their columns of the whole rows, and zeros elsewhere."""
        return self.origin.pad(self.own.unpad(states))

    @staticmethod
    def of(selected: Bool[Tensor, "B T"]) -> Part:
        """The part with the ``selected`` tokens (a mask on the host). It has at least one column, even if empty."""
        lengths = selected.sum(dim=1)
        real = torch.arange(max(1, int(lengths.max()))) < lengths[:, None]
        return Part(PackedRows.of(selected, rounded=False), PackedRows.of(real, rounded=False), real, real)


def split_segments(segment_ids: Int[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> tuple[Part, Part]:
    """The first and the second text of every row, both on the host. The second is empty in a row with one text."""
    return Part.of(real & (segment_ids == 0)), Part.of(real & (segment_ids == 1))
