"""The pooled state of a feature, for objectives with one label per feature.

Letters: B rows, H hidden width, E features.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput


def sum_rows(states: EncoderOutput, batch: Batch) -> Float[Tensor, "E H"]:
    """The pooled state of every feature; if it is a pair in both orders, the sum of both rows' states.

    GPT does so for pairs that have no natural order (Radford et al. 2018, section 3.3).
    """
    rows = batch.on_host.choices
    if rows is None:
        return states.pooled
    owners = torch.repeat_interleave(rows).to(states.pooled.device, non_blocking=True)
    return states.pooled.new_zeros(len(rows), states.pooled.shape[1]).index_add(0, owners, states.pooled)
