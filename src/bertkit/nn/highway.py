"""A layer that decides for every number whether to change it (Srivastava et al., arXiv 1505.00387).

Letter: H width, the same before and behind.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class Highway(nn.Module):
    """``g * relu(transform(x)) + (1 - g) * x`` with ``g = sigmoid(carry(x))``.

    The names are those of allenai/bilm-tf, where the gate called "carry" is the share of what is *changed*.
    """

    def __init__(self, *, carry: nn.Linear, transform: nn.Linear) -> None:
        super().__init__()
        self.carry = carry
        self.transform = transform

    def forward(self, states: Float[Tensor, "... H"]) -> Float[Tensor, "... H"]:
        """Each row by itself."""
        changed, share = F.relu(self.transform(states)), torch.sigmoid(self.carry(states))
        # Under autocast products have fewer digits than what they read, and lerp takes no mixture.
        return torch.lerp(states, changed.to(states.dtype), share.to(states.dtype))
