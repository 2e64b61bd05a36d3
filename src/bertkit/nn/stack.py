"""The blocks of a Transformer, applied one after the other to packed tokens.

Letters: B rows, T tokens of the longest row, L tokens in the packed list, M of them whose output is computed, H hidden
width.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertkit.nn.packing import PackedRows, TokenSubset, find_true, round_up

MAX_SUBSET = 0.75
"""Above this share of the tokens, selecting them costs as much as it saves."""


class BlockStack(nn.ModuleList):
    """Blocks applied to the real tokens only: padding is never computed.

    The last block computes only the positions that an objective reads: about a sixth of the tokens with masked words,
    one per row with a classifier.
    """

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"],
        positions: Bool[Tensor, "B T"] | None,
        *,
        output_hidden_states: bool,
        gradient_checkpointing: bool,
    ) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "B T H"], ...]]:
        """The output of the last block, and with ``output_hidden_states`` also the input of every block.

        ``mask`` (True on real tokens) and ``positions`` (whose output is needed; None for all) are on the host.
        ``output_hidden_states`` needs the output of every position. The tuple is empty without it, and otherwise has
        one entry per block plus one for the last output. Entries that are not computed are arbitrary.

        With ``gradient_checkpointing`` the backward pass recomputes each block (Chen et al., arXiv 1604.06174).
        """
        layout = PackedRows.of(mask, rounded=states.device.type == "cpu").to(states.device)
        subset = None
        if positions is not None and not output_hidden_states:
            subset = _select_positions(positions, mask, states.device)
        tokens = layout.unpad(states)
        hidden_states: list[Tensor] = []
        for number, block in enumerate(self, start=1):  # by number: layers that share weights are one block
            if output_hidden_states:
                hidden_states.append(layout.pad(tokens))
            selected = subset if number == len(self) else None
            tokens = _run_block(block, tokens, layout, selected, recompute=gradient_checkpointing)
        output = _pad_output(tokens, layout, subset)
        return output, (*hidden_states, output) if output_hidden_states else ()


def _run_block(
    block: nn.Module, tokens: Float[Tensor, "L H"], layout: PackedRows, subset: TokenSubset | None, *, recompute: bool
) -> Float[Tensor, "M H"]:
    """The output of one block. ``checkpoint`` restores the random state, so recomputed dropout is the same."""
    if recompute and tokens.requires_grad:
        output: Tensor = checkpoint(block, tokens, layout, subset, use_reentrant=False)
    else:
        output = block(tokens, layout, subset)
    return output


def _select_positions(
    positions: Bool[Tensor, "B T"], mask: Bool[Tensor, "B T"], device: torch.device
) -> TokenSubset | None:
    """The tokens at ``positions``; None where they are almost all tokens.

    Other tokens, from the beginnings of all rows, are added up to a round number (see ``packing.py``).
    """
    count = int(np.count_nonzero(positions.numpy()))
    if count > MAX_SUBSET * np.count_nonzero(mask.numpy()):
        return None
    # Transposed: column by column the extra tokens are spread over all rows, so that no single row becomes wide.
    others = find_true((mask & ~positions).T)[: round_up(count) - count]
    selected = positions.clone()
    selected[others % len(mask), others // len(mask)] = True
    return TokenSubset.of(selected, mask).to(device)


def _pad_output(tokens: Float[Tensor, "M H"], layout: PackedRows, subset: TokenSubset | None) -> Float[Tensor, "B T H"]:
    """The computed tokens at their entries of the padded rows."""
    if subset is None:
        return layout.pad(tokens)
    indices = subset.indices if layout.indices is None else layout.indices[subset.indices]
    return PackedRows(layout.rows, layout.width, indices).pad(tokens)
