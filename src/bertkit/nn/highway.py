"""A highway layer: a gated mixture of a transformation and the identity (Srivastava et al., arXiv 1505.00387).

Letter: H width of the input and the output.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class Highway(nn.Module):
    """``g * relu(transform(x)) + (1 - g) * x`` with ``g = sigmoid(carry(x))``.

    The names are those of allenai/bilm-tf. There the gate named "carry" is the share of the *transformed* value.
    """

    def __init__(self, *, carry: nn.Linear, transform: nn.Linear) -> None:
        super().__init__()
        self.carry = carry
        self.transform = transform

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each row independently."""
        transformed, gate = F.relu(self.transform(states)), torch.sigmoid(self.carry(states))
        # Under autocast the products are bfloat16 while ``states`` is float32, and lerp accepts one dtype only.
        return torch.lerp(states, transformed.to(states.dtype), gate.to(states.dtype))
