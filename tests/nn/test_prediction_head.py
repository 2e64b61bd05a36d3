"""ModernBERT's layer before output layers, beside its formula."""

from __future__ import annotations

import torch
from torch import nn

from bertkit.nn.prediction_head import PredictionHead


def test_the_output_is_a_normalised_dense_layer() -> None:
    torch.manual_seed(13)
    head = PredictionHead(dense=nn.Linear(7, 7), activation=nn.GELU(), norm=nn.LayerNorm(7))
    states = torch.randn(3, 5, 7)
    activated = nn.functional.gelu(states @ head.dense.weight.T + head.dense.bias)
    centred = activated - activated.mean(dim=-1, keepdim=True)
    expected = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(head(states), expected)
