"""Self-attention, bidirectional and causal, against the formula written out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nn.reference_attention import NUM_HEADS, H, attend, attend_causally, make_attention
from torch import Tensor

from bertkit.nn.packing import PackedRows, TokenSubset

B, T = 3, 13
PADDED = torch.arange(T) < torch.tensor([T, 5, 1])[:, None]
FULL = torch.ones_like(PADDED)

both_masks = pytest.mark.parametrize("mask", [PADDED, FULL], ids=["padded", "full"])


@pytest.fixture(params=["hand-written", "torch"])
def training_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both implementations that attention has for training."""
    if request.param == "torch":
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_attention_equals_the_formula(padded: bool, training: bool) -> None:
    attention, states = make_attention().train(training), torch.randn(B, T, H)
    mask = PADDED if padded else None
    layout = PackedRows.of(FULL if mask is None else mask)
    expected = layout.unpad(attend(attention, states, mask))
    torch.testing.assert_close(attention(layout.unpad(states), layout), expected, rtol=0, atol=1e-5)


def test_a_subset_attends_to_all_tokens() -> None:
    attention, states = make_attention().eval(), torch.randn(B, T, H)
    layout, positions = PackedRows.of(PADDED), torch.zeros(B, T, dtype=torch.bool)
    positions[0, [7, 2]] = positions[1, 4] = positions[2, 0] = True
    subset = attention(layout.unpad(states), layout, TokenSubset.of(positions, PADDED))
    torch.testing.assert_close(subset, attend(attention, states, PADDED)[positions], rtol=0, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_attention_gradients_equal_those_of_the_formula(training: bool) -> None:
    attention, states = make_attention().train(training), torch.randn(B, T, H, requires_grad=True)
    upstream = torch.randn(B, T, H)
    inputs = [states, *attention.parameters()]
    layout = PackedRows.of(PADDED)
    ours = torch.autograd.grad((layout.pad(attention(layout.unpad(states), layout)) * upstream).sum(), inputs)
    expected = torch.autograd.grad((attend(attention, states, PADDED)[PADDED] * upstream[PADDED]).sum(), inputs)
    for left, right in zip(ours, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_attention_dropout_keeps_the_expectation() -> None:
    states = torch.randn(1, T, H)
    attention = make_attention(dropout=0.3).train()
    # Dropout acts on the probabilities, so the output is linear in it: the mean is the output without dropout.
    noisy = attention(states.expand(4000, T, H).flatten(0, 1), PackedRows(4000, T)).view(4000, T, H).mean(dim=0)
    exact = attention.eval()(states[0], PackedRows(1, T))
    torch.testing.assert_close(noisy, exact, rtol=0, atol=0.03)


@pytest.mark.usefixtures("training_kernel")
@both_masks
def test_causal_attention_and_its_gradients_equal_the_formula(mask: Tensor) -> None:
    attention, states = make_attention(causal=True).train(), torch.randn(B, T, H, requires_grad=True)
    upstream, inputs, layout = torch.randn(B, T, H), [states, *attention.parameters()], PackedRows.of(mask)
    ours = layout.pad(attention(layout.unpad(states), layout))
    expected = attend_causally(attention, states)
    torch.testing.assert_close(ours[mask], expected[mask], rtol=0, atol=1e-5)
    gradients = torch.autograd.grad((ours * upstream)[mask].sum(), inputs)
    for left, right in zip(gradients, torch.autograd.grad((expected * upstream)[mask].sum(), inputs), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("training_kernel")
@pytest.mark.parametrize("with_subset", [False, True])
@both_masks
def test_no_causal_output_depends_on_a_later_token(mask: Tensor, with_subset: bool) -> None:
    attention = make_attention(dropout=0.1, causal=True).train()
    states, layout = torch.randn(B, T, H, requires_grad=True), PackedRows.of(mask)
    positions = mask & (torch.arange(B * T).view(B, T) % 3 > 0) if with_subset else mask
    subset = TokenSubset.of(positions, mask) if with_subset else None
    outputs = attention(layout.unpad(states), layout, subset)[: int(positions.sum())]
    assert outputs.shape == (int(positions.sum()), H)
    for output, (row, column) in zip(outputs, positions.nonzero().tolist(), strict=True):
        (gradient,) = torch.autograd.grad(output.sin().sum(), [states], retain_graph=True)
        depends = gradient.abs().sum(dim=-1) > 0
        assert not depends[row, column + 1 :].any()
        assert not depends[torch.arange(B) != row].any()
        assert depends[row, column]
        assert depends[row, : column + 1].float().mean() > 0.5  # dropout may remove a token from all heads


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, T), min_size=1, max_size=4), st.integers(0, 2**31))
def test_a_causal_subset_has_the_same_output_as_all_tokens(lengths: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    positions = mask & (torch.rand(mask.shape, generator=generator) < 0.5)
    positions[:, 0] = True
    attention, layout = make_attention(causal=True).eval(), PackedRows.of(mask)
    states = layout.unpad(torch.randn(*mask.shape, H, generator=generator))
    subset = attention(states, layout, TokenSubset.of(positions, mask))
    torch.testing.assert_close(subset, layout.pad(attention(states, layout))[positions], rtol=0, atol=1e-5)


def test_changing_later_tokens_changes_no_earlier_causal_output() -> None:
    attention, states = make_attention(causal=True).eval(), torch.randn(B, T, H)
    changed = states.clone()
    changed[:, 7:] = torch.randn(B, T - 7, H)
    layout = PackedRows(B, T)
    before, after = (layout.pad(attention(each.flatten(0, 1), layout)) for each in (states, changed))
    torch.testing.assert_close(before[:, :7], after[:, :7], rtol=0, atol=1e-6)
    assert (before[:, 7:] != after[:, 7:]).any(dim=-1).all()


def test_long_rows_without_dropout_keep_no_scores() -> None:
    """In float32; with dropout the scores of all heads are kept for the backward pass."""
    tokens, kept = 600, list[int]()
    layout = PackedRows.of(torch.ones(1, tokens, dtype=torch.bool))

    def keep(saved: Tensor) -> Tensor:
        kept.append(saved.numel())
        return saved

    for rate, keeps_scores in ((0.0, False), (0.1, True)):
        attention, states = make_attention(dropout=rate).train(), torch.randn(tokens, H, requires_grad=True)
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
            output = attention(states, layout)
        assert (max(kept) >= NUM_HEADS * tokens * tokens) is keeps_scores
        if not keeps_scores:
            (gradient,) = torch.autograd.grad(output.sum(), states)
            (expected,) = torch.autograd.grad(attend(attention, states[None], None).sum(), states)
            torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-5)
