"""The blocks of a Transformer, one above the other.

Letters: B rows, T tokens of the longest row, L tokens in a list, M of them that are raised, H hidden width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertkit.nn.packing import PackedRows, TokenSubset, round_up

_WORTH_CHOOSING = 0.75
"""Above this share of the tokens, picking them out costs what it saves."""


class BlockStack(nn.ModuleList):
    """Padding is never computed: all but attention works on a list of the real tokens.

    The last block raises the wanted tokens alone: with masked words a sixth of them, with a classifier next to none.
    """

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        real: Bool[Tensor, "B T"],
        wanted: Bool[Tensor, "B T"] | None,
        *,
        keep: bool,
        recompute: bool,
    ) -> tuple[Float[Tensor, "B T H"], tuple[Float[Tensor, "B T H"], ...]]:
        """The last block's states, and with ``keep`` what went into every block and came out of the last.

        ``real`` and ``wanted`` are on the host. With ``keep`` or without ``wanted`` all tokens are raised; where no
        token was, stands what nobody reads. With ``recompute`` blocks are computed again on the way back.
        """
        layout = PackedRows.of(real).to(states.device)
        choice = None if wanted is None or keep else _choose_places(wanted, real, states.device)
        states = layout.collect(states)
        kept: list[Tensor] = []
        for block in self:
            if keep:
                kept.append(layout.spread(states))
            states = _raise(block, states, layout, choice if block is self[-1] else None, recompute=recompute)
        raised = _put_back(states, layout, choice)
        return raised, (*kept, raised) if keep else ()


def _raise(
    block: nn.Module, states: Float[Tensor, "L H"], layout: PackedRows, choice: TokenSubset | None, *, recompute: bool
) -> Float[Tensor, "M H"]:
    """The states one block higher. The random state is put back before a block is computed again."""
    if recompute and states.requires_grad:
        raised: Tensor = checkpoint(block, states, layout, choice, use_reentrant=False)
    else:
        raised = block(states, layout, choice)
    return raised


def _choose_places(wanted: Bool[Tensor, "B T"], real: Bool[Tensor, "B T"], device: torch.device) -> TokenSubset | None:
    """The wanted tokens; None where they are hardly fewer than all.

    Up to a round number (see ``layout.py``) others come along, from the beginnings of all rows.
    """
    count = int(wanted.sum())
    if count > _WORTH_CHOOSING * int(real.sum()):
        return None
    others = (real & ~wanted).T.nonzero()[: round_up(count) - count]
    chosen = wanted.clone()
    chosen[others[:, 1], others[:, 0]] = True
    return TokenSubset.of(chosen, real).to(device)


def _put_back(states: Float[Tensor, "L H"], layout: PackedRows, choice: TokenSubset | None) -> Float[Tensor, "B T H"]:
    """The raised states where their tokens stand; elsewhere what nobody reads."""
    if choice is None:
        return layout.spread(states)
    slots = choice.index if layout.slots is None else layout.slots[choice.index]
    return PackedRows(layout.rows, layout.width, slots).spread(states)
