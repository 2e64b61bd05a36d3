"""Loss, gradient and argmax over a vocabulary against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bertkit.nn.cross_entropy import argmax_logits, sum_cross_entropy


# With 40,009 logits per row there are several blocks of rows.
@pytest.mark.parametrize(("rows", "vocab"), [(7, 13), (99, 40_009), (1, 2)])
def test_loss_and_gradient_equal_torchs(rows: int, vocab: int) -> None:
    logits = 3 * torch.randn(rows, vocab)
    labels = torch.randint(0, vocab, (rows,))
    actual, reference = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, expected = sum_cross_entropy(actual, labels), F.cross_entropy(reference, labels, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    for part in (loss, expected):
        torch.autograd.backward(part * 0.37)
    assert actual.grad is not None
    torch.testing.assert_close(actual.grad, reference.grad, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("rows", "vocab"), [(0, 13), (7, 13), (99, 40_009)])
def test_without_a_gradient_the_loss_equals_torchs_too(rows: int, vocab: int) -> None:
    logits, labels = 3 * torch.randn(rows + 2, vocab), torch.randint(0, vocab, (rows,))
    expected = F.cross_entropy(logits[:rows], labels, reduction="sum")
    torch.testing.assert_close(sum_cross_entropy(logits, labels), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("rows", "vocab"), [(0, 13), (7, 13), (99, 40_009)])
def test_argmax_equals_torchs(rows: int, vocab: int) -> None:
    logits = torch.randn(rows, vocab).bfloat16()
    assert torch.equal(argmax_logits(logits), logits.argmax(dim=-1))


def test_bfloat16_logits_give_a_float32_loss() -> None:
    logits = torch.randn(37, 997, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, 997, (37,))
    loss = sum_cross_entropy(logits, labels)
    expected = F.cross_entropy(logits.detach().float(), labels, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    torch.autograd.backward(loss)
    assert logits.grad is not None
    assert logits.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("layout", ["one row", "expanded", "sliced"])
def test_logits_of_any_layout_have_a_gradient(layout: str) -> None:
    leaf = torch.randn({"one row": (50, 1), "expanded": (1, 50), "sliced": (6, 80)}[layout]).bfloat16().requires_grad_()
    logits = leaf.T if layout == "one row" else leaf[:, 7:57] if layout == "sliced" else leaf.expand(6, 50)
    labels = torch.arange(len(logits))
    (gradient,) = torch.autograd.grad(sum_cross_entropy(logits, labels), logits, retain_graph=True)
    exact = logits.detach().float().requires_grad_()
    (expected,) = torch.autograd.grad(F.cross_entropy(exact, labels, reduction="sum"), exact)
    torch.testing.assert_close(gradient.float(), expected, rtol=0.01, atol=1e-3)


def test_without_rows_the_loss_is_zero() -> None:
    logits = torch.zeros(0, 13, requires_grad=True)
    loss = sum_cross_entropy(logits, torch.zeros(0, dtype=torch.int64))
    torch.autograd.backward(loss)
    assert loss.item() == 0


def test_a_vanishing_probability_has_a_finite_loss_and_an_exact_gradient() -> None:
    logits = torch.tensor([[0.0, 300.0]], requires_grad=True)
    loss = sum_cross_entropy(logits, torch.tensor([0]))
    torch.autograd.backward(loss)
    assert loss.item() == pytest.approx(300)
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 1.0]]))


def test_nan_logits_give_a_nan_loss() -> None:
    logits = torch.tensor([[0.0, float("nan")]], requires_grad=True)
    assert sum_cross_entropy(logits, torch.tensor([0])).isnan()
