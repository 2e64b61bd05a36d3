"""``make test`` checks shapes; this checks that it does."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from bertkit.batch import EncoderOutput


def test_a_letter_is_one_size_throughout_a_call(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("switched on by make test: --jaxtyping-packages=bertkit,shapes.checked")
    EncoderOutput(hidden_states=torch.zeros(3, 13, 7), pooled=torch.zeros(3, 7))
    with pytest.raises(TypeCheckError):
        EncoderOutput(hidden_states=torch.zeros(3, 13, 7), pooled=torch.zeros(3, 12))
    with pytest.raises(TypeCheckError):
        EncoderOutput(hidden_states=torch.zeros(3, 13, 7, dtype=torch.int64), pooled=torch.zeros(3, 7))
