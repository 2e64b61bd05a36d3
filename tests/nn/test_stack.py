"""A stack of blocks: padding and positions that are not needed are not computed, and change no result."""

from __future__ import annotations

import pytest
import torch
from tests.nn.reference_attention import H, make_attention
from torch import Tensor, nn

from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.dropout import Dropout
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.stack import BlockStack

B, T, LAYERS = 3, 13, 3
LENGTHS = (T, 5, 1)
MASK = torch.arange(T) < torch.tensor(LENGTHS)[:, None]


def make_stack(dropout: float = 0.0) -> BlockStack:
    return BlockStack(
        PostNormBlock(
            attention=make_attention(dropout),
            attention_norm=ResidualNorm(H, eps=1e-12, dropout=Dropout(dropout)),
            feed_forward=FeedForward(inner=nn.Linear(H, 37), activation=nn.GELU(), outer=nn.Linear(37, H)),
            feed_forward_norm=ResidualNorm(H, eps=1e-12, dropout=Dropout(dropout)),
        )
        for _ in range(LAYERS)
    )


def run(stack: BlockStack, states: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
    output: Tensor = stack(states, mask, positions, output_hidden_states=False, gradient_checkpointing=False)[0]
    return output


def test_padding_changes_no_state() -> None:
    stack, states = make_stack().eval(), torch.randn(B, T, H)
    together = run(stack, states, MASK)
    for row, length in enumerate(LENGTHS):
        alone = run(stack, states[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
        torch.testing.assert_close(together[row, :length], alone[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("every", [1, 5], ids=["almost all", "few"])
def test_selected_positions_have_the_states_of_a_full_pass(every: int) -> None:
    stack, states = make_stack().eval(), torch.randn(B, T, H)
    positions = MASK & (torch.arange(T) % every == 0)
    torch.testing.assert_close(
        run(stack, states, MASK, positions)[positions], run(stack, states, MASK)[positions], rtol=0, atol=1e-5
    )


def test_layers_may_share_their_weights() -> None:
    stack, states = BlockStack([make_stack().eval()[0]] * LAYERS), torch.randn(B, T, H)
    positions = torch.zeros_like(MASK)
    positions[:, 0] = True
    torch.testing.assert_close(
        run(stack, states, MASK, positions)[positions], run(stack, states, MASK)[positions], rtol=0, atol=1e-5
    )


def test_the_last_block_computes_the_selected_positions_only() -> None:
    stack, lengths = make_stack().eval(), []
    for block in stack:
        assert isinstance(block, PostNormBlock)
        block.feed_forward.register_forward_pre_hook(lambda _, inputs: lengths.append(len(inputs[0])))
    positions = torch.zeros_like(MASK)
    positions[:, 0] = True
    run(stack, torch.randn(B, T, H), MASK, positions)
    assert lengths == [19, 19, 3]


def test_hidden_states_are_the_inputs_of_all_blocks_and_the_last_output() -> None:
    stack, states = make_stack().eval(), torch.randn(B, T, H)
    output, layers = stack(states, MASK, None, output_hidden_states=True, gradient_checkpointing=False)
    assert len(layers) == LAYERS + 1
    assert torch.equal(layers[0][MASK], states[MASK])
    assert torch.equal(layers[-1], output)
    torch.testing.assert_close(output[MASK], run(stack, states, MASK)[MASK], rtol=0, atol=1e-5)
    shorter = BlockStack(list(stack)[:1])
    torch.testing.assert_close(layers[1][MASK], run(shorter, states, MASK)[MASK], rtol=0, atol=1e-5)


def test_gradient_checkpointing_changes_no_bit_with_dropout_on() -> None:
    stack, states = make_stack(dropout=0.1).train(), torch.randn(B, T, H, requires_grad=True)
    results = []
    for checkpointing in (False, True):
        torch.manual_seed(7)
        output, _ = stack(states, MASK, None, output_hidden_states=False, gradient_checkpointing=checkpointing)
        results.append([output, *torch.autograd.grad(output.sin().sum(), [states, *stack.parameters()])])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
