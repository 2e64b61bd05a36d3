"""Dropout: rate, scale, independence, gradients, and what its random numbers depend on."""

from __future__ import annotations

import pytest
import torch

from bertkit.nn.dropout import Dropout, RowDropout, draw_mask, find_kept, keep_scale


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_rate_and_the_scale_are_as_set(rate: float, dtype: torch.dtype) -> None:
    states = torch.ones(997, 1003, dtype=dtype, requires_grad=True)
    dropped = Dropout(rate).train()(states)
    assert dropped.dtype == dtype
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.002)
    torch.testing.assert_close(dropped.max().item(), 1 / (1 - rate), rtol=0.01, atol=0)
    assert dropped.float().mean().item() == pytest.approx(1.0, abs=0.01)


def test_the_scale_is_that_of_the_actual_rate() -> None:
    kept = find_kept(torch.Size([4_000_037]), draw_mask(0.1))
    assert kept.float().mean().item() * keep_scale(0.1) == pytest.approx(1.0, abs=0.0005)
    assert bool(((kept == 0) | (kept == 1)).all())


def test_entries_are_independent_of_their_neighbours() -> None:
    dropped = find_kept(torch.Size([4_000_000]), draw_mask(0.3)) == 0
    for distance in (1, 2, 3, 4, 128):
        both = (dropped[distance:] & dropped[:-distance]).float().mean().item()
        assert both == pytest.approx(0.09, abs=0.001)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_is_dropped_at_the_same_entries(dtype: torch.dtype) -> None:
    states = torch.randn(37, 99, dtype=dtype, requires_grad=True)
    dropped = Dropout(0.3).train()(states)
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad == 0, dropped == 0)
    torch.testing.assert_close(states.grad.max().item(), 1 / 0.7, rtol=0.01, atol=0)


def test_transposed_states_are_dropped_entry_by_entry() -> None:
    states = torch.ones(37, 99, requires_grad=True)
    dropped = Dropout(0.3).train()(states.T)
    assert dropped.shape == (99, 37)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.05)


def test_the_mask_depends_on_torchs_random_state() -> None:
    states = torch.randn(13, 7, requires_grad=True)
    dropout = Dropout(0.5).train()
    torch.manual_seed(7)
    first = dropout(states)
    saved = torch.get_rng_state()
    second = dropout(states)
    assert not torch.equal(first, second)
    torch.set_rng_state(saved)
    assert torch.equal(dropout(states), second)
    torch.manual_seed(7)
    assert torch.equal(dropout(states), first)


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero() -> None:
    states = torch.randn(13, 7, requires_grad=True)
    assert Dropout(0.5).eval()(states) is states
    assert Dropout(0.0).train()(states) is states


def test_entries_are_dropped_without_a_gradient_too() -> None:
    assert (Dropout(0.5).train()(torch.ones(999)) == 0).any()


def test_the_mask_does_not_depend_on_the_number_of_threads() -> None:
    masks = []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        torch.manual_seed(7)
        masks.append(find_kept(torch.Size([400_037]), draw_mask(0.1)))
    assert torch.equal(*masks)


def test_row_dropout_uses_one_mask_for_all_tokens_of_a_row() -> None:
    states = torch.randn(13, 7, 99, requires_grad=True)
    dropout = RowDropout(0.25)
    dropped = dropout(states)
    kept = dropped[:, 0] != 0
    assert torch.equal(dropped, states * kept.unsqueeze(1) * keep_scale(0.25))
    assert not torch.equal(kept[0], kept[1])
    assert 0.7 < float(kept.double().mean()) < 0.8
    assert dropout.eval()(states) is states
