"""Initial values of the weights of Transformers. (ELMo's differ and are in ``encoder_types/elmo_network.py``.)

| module        | parameter | initial value                                            |
|---------------|-----------|----------------------------------------------------------|
| Linear        | weight    | truncated normal: mean 0, sigma, truncated at 2 sigma    |
| Linear        | bias      | 0                                                        |
| Embedding     | weight    | truncated normal, as for Linear                          |
| LayerNorm     | weight    | 1                                                        |
| LayerNorm     | bias      | 0                                                        |
| positions     | weight    | as an Embedding, or ``fill_sinusoids``                   |

Sigma is 0.02 in BERT (google-research/bert ``modeling.py``, ``create_initializer``). A bare ``nn.Parameter`` is
initialised where it is created.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

BERT_SIGMA = 0.02


def initialize(module: nn.Module, sigma: float = BERT_SIGMA) -> None:
    """Initialise every Linear, Embedding and LayerNorm inside ``module`` as in the table above."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            _fill_truncated_normal(part.weight, sigma)
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
        if isinstance(part, nn.Linear | nn.LayerNorm) and part.bias is not None:
            nn.init.zeros_(part.bias)


@torch.no_grad()
def fill_sinusoids(weight: Tensor, sigma: float = BERT_SIGMA) -> None:
    """Initialise a position table with the sinusoids of Vaswani et al. 2017 (section 3.5), scaled to RMS ``sigma``.

    With sinusoids the previous token is the same linear map at every position; with random vectors attention has to
    learn it position by position.
    """
    if weight.is_meta:
        return
    positions, width = weight.shape
    frequencies = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(positions)[:, None] * frequencies
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]
    weight.copy_(waves * (sigma * math.sqrt(2)))


@torch.no_grad()
def _fill_truncated_normal(weight: Tensor, sigma: float) -> None:
    """Sample, and sample again what is outside two sigma: seven times faster than ``nn.init.trunc_normal_``."""
    if weight.is_meta:  # it has no values, and normal_ on the meta device would import torch._dynamo: seconds
        return
    weight.normal_(0.0, sigma)
    entries = weight.view(-1)
    outside = (entries.abs() > 2 * sigma).nonzero().squeeze(1)
    while len(outside) > 0:  # 4.6 % of the values are outside, so a few rounds are enough
        resampled = torch.normal(0.0, sigma, outside.shape, device=weight.device)
        entries[outside] = resampled
        outside = outside[resampled.abs() > 2 * sigma]
