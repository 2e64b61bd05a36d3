from __future__ import annotations

import torch
from tests.nn.inference_blocks import LENGTHS, MASK, T, make_stack, run
from tests.nn.reference_attention import H

from bertkit.nn.dense_stack import DenseStack
from bertkit.nn.stack import BlockStack


def test_states_are_those_of_the_packed_blocks() -> None:
    stack, states = make_stack(), torch.randn(len(LENGTHS), T, H)
    found = run(DenseStack(stack), states, MASK)
    torch.testing.assert_close(found[MASK], run(stack, states, MASK)[MASK], rtol=0, atol=1e-5)
    assert found.isfinite().all()
    shared = BlockStack([stack[0]] * 3)
    found = run(DenseStack(shared), states, MASK)
    torch.testing.assert_close(found[MASK], run(shared, states, MASK)[MASK], rtol=0, atol=1e-5)
