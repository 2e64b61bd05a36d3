from __future__ import annotations

import pytest
import torch

from bertkit.nn.dropout import Dropout, RowDropout, keep_scale, sample_kept


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rate_and_scale(rate: float, dtype: torch.dtype) -> None:
    states = torch.ones(997, 1003, dtype=dtype, requires_grad=True)
    dropped = Dropout(rate).train()(states)
    assert dropped.dtype == dtype
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.002)
    torch.testing.assert_close(dropped.max().item(), 1 / (1 - rate), rtol=0.01, atol=0)
    assert dropped.float().mean().item() == pytest.approx(1.0, abs=0.01)


def test_the_realised_rate_and_the_scale_agree() -> None:
    kept = sample_kept(torch.Size([4_000_037]), 0.1)
    assert kept.float().mean().item() * keep_scale(0.1) == pytest.approx(1.0, abs=0.0005)
    assert bool(((kept == 0) | (kept == 1)).all())


def test_entries_are_independent_of_their_neighbours() -> None:
    dropped = sample_kept(torch.Size([4_000_000]), 0.3) == 0
    for distance in (1, 2, 3, 4, 128):
        together = (dropped[distance:] & dropped[:-distance]).float().mean().item()
        assert together == pytest.approx(0.09, abs=0.001)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_has_the_same_holes(dtype: torch.dtype) -> None:
    states = torch.randn(37, 99, dtype=dtype, requires_grad=True)
    dropped = Dropout(0.3).train()(states)
    dropped.sum().backward()
    assert states.grad is not None
    assert torch.equal(states.grad == 0, dropped == 0)
    torch.testing.assert_close(states.grad.max().item(), 1 / 0.7, rtol=0.01, atol=0)


def test_strided_states_are_dropped_entry_by_entry() -> None:
    states = torch.ones(37, 99, requires_grad=True)
    dropped = Dropout(0.3).train()(states.T)
    assert dropped.shape == (99, 37)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.3, abs=0.05)


def test_the_random_state_of_torch_governs_it() -> None:
    states = torch.randn(13, 7, requires_grad=True)
    brick = Dropout(0.5).train()
    torch.manual_seed(7)
    first = brick(states)
    saved = torch.get_rng_state()
    second = brick(states)
    assert not torch.equal(first, second)
    torch.set_rng_state(saved)
    assert torch.equal(brick(states), second)
    torch.manual_seed(7)
    assert torch.equal(brick(states), first)


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero() -> None:
    states = torch.randn(13, 7, requires_grad=True)
    assert Dropout(0.5).eval()(states) is states
    assert Dropout(0.0).train()(states) is states


def test_without_a_gradient_it_drops_too() -> None:
    assert (Dropout(0.5).train()(torch.ones(999)) == 0).any()


def test_the_number_of_threads_is_nothing_to_it() -> None:
    drawn = []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        torch.manual_seed(7)
        drawn.append(sample_kept(torch.Size([400_037]), 0.1))
    assert torch.equal(*drawn)


def test_a_row_has_its_holes_in_every_token() -> None:
    states = torch.randn(13, 7, 99, requires_grad=True)
    brick = RowDropout(0.25)
    dropped = brick(states)
    kept = dropped[:, 0] != 0
    assert torch.equal(dropped, states * kept.unsqueeze(1) * keep_scale(0.25))
    assert not torch.equal(kept[0], kept[1])
    assert 0.7 < float(kept.double().mean()) < 0.8
    assert brick.eval()(states) is states
