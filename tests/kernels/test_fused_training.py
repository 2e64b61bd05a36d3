"""The compiled passes of training against torch: the same masks, and results within the last digits of the format."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.on_amx import needs_amx
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.kernels import amx, fused, fused_training
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import ResidualNorm
from bertkit.nn.cross_entropy import sum_cross_entropy
from bertkit.nn.dropout import Dropout, draw_mask, find_kept
from bertkit.nn.packing import PackedRows

needs_compiler = pytest.mark.skipif(not fused.is_compiled(), reason="no C compiler with OpenMP on this machine")


with_each_format = pytest.mark.parametrize("dtype", fused.FORMATS)


def bfloat16(*shape: int) -> Tensor:
    return torch.randn(*shape).bfloat16()


def torchs(monkeypatch: pytest.MonkeyPatch, compute: object) -> list[Tensor]:
    """The result of ``compute`` from the same random state, without the compiled passes."""
    with monkeypatch.context() as patch:
        patch.setattr(fused, "_library", lambda: None)
        return run(compute)


def run(compute: object) -> list[Tensor]:
    torch.manual_seed(7)
    assert callable(compute)
    result: list[Tensor] = compute()
    return result


def assert_close(actual: list[Tensor], expected: list[Tensor]) -> None:
    """Within two of bfloat16's last digits, or within rounding in float32."""
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        rtol, atol = (0.016, 2e-3) if one.dtype == torch.bfloat16 else (1e-5, 1e-4)
        torch.testing.assert_close(one.float(), other.float(), rtol=rtol, atol=atol)


@needs_compiler
@pytest.mark.parametrize("shape", [(1,), (3, 7), (37, 113), (5, 4096), (3, 4099)])
@pytest.mark.parametrize("rate", [0.1, 0.5])
@with_each_format
def test_dropout_drops_the_same_entries(shape: tuple[int, ...], rate: float, dtype: torch.dtype) -> None:
    states, mask = torch.randn(*shape).to(dtype), draw_mask(rate)
    expected = (states * mask.scale) * find_kept(states.shape, mask).to(dtype)
    assert torch.equal(fused_training.dropout(states, mask), expected)


@needs_compiler
@with_each_format
def test_dropout_and_its_gradient_equal_torchs_bit_for_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute() -> list[Tensor]:
        states = torch.randn(37, 99).to(dtype).requires_grad_()
        dropped = Dropout(0.3).train()(states.T)
        torch.autograd.backward(dropped, torch.randn(99, 37).to(dtype))
        assert states.grad is not None
        return [dropped.detach(), states.grad]

    for actual, expected in zip(run(compute), torchs(monkeypatch, compute), strict=True):
        assert torch.equal(actual, expected)


@needs_compiler
@pytest.mark.parametrize(
    ("dtype", "on_amx"),
    [pytest.param(torch.bfloat16, True, marks=needs_amx), (torch.bfloat16, False), (torch.float32, False)],
)
@pytest.mark.parametrize(("examples", "tokens"), [(1, 1), (3, 5), (2, 16), (3, 33), (1, 130)])
@pytest.mark.parametrize("rate", [0.0, 0.2])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_torchs(
    dtype: torch.dtype,
    on_amx: bool,
    examples: int,
    tokens: int,
    rate: float,
    padded: bool,
    causal: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not on_amx:
        monkeypatch.setattr(amx, "_permission", lambda: 0)
    width = 28
    lengths = torch.tensor([tokens, max(1, tokens // 2), 1][:examples] if padded else [tokens] * examples)
    layout = PackedRows.of(torch.arange(tokens) < lengths[:, None])

    def compute() -> list[Tensor]:
        attention = SelfAttention(
            qkv=nn.Linear(width, 3 * width), output=nn.Linear(width, width), num_heads=4, dropout=rate, causal=causal
        ).train()
        count = examples * tokens if layout.indices is None else len(layout.indices)
        states = torch.randn(count, width, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            output = attention(states, layout)
        torch.autograd.backward(output, torch.randn(output.shape).to(dtype))
        return [output.detach(), *(each.grad for each in (states, *attention.parameters()) if each.grad is not None)]

    actual, expected = run(compute), torchs(monkeypatch, compute)
    for one, other in zip(actual, expected, strict=True):
        assert one.isfinite().all()
        if dtype == torch.float32:
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
            continue
        torch.testing.assert_close(one.float(), other.float(), rtol=0.05, atol=0.05)
        assert F.cosine_similarity(one.float().flatten(), other.float().flatten(), dim=0) > 0.999 or one.norm() < 0.05


@needs_compiler
@with_each_format
def test_a_masked_entry_has_no_probability_at_all(dtype: torch.dtype) -> None:
    scores, allowed = torch.randn(4, 3, 21).to(dtype), torch.arange(21) % 3 > 0
    probabilities, dropped = fused_training.softmax_dropout(scores, allowed.expand(2, 1, 21), None)
    assert dropped is probabilities
    assert torch.equal(probabilities != 0, allowed.expand(4, 3, 21))
    torch.testing.assert_close(probabilities.float().sum(-1), torch.ones(4, 3), rtol=0, atol=0.01)


@needs_compiler
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (7, 28), (130, 99), (64, 256)])
@pytest.mark.parametrize("rate", [0.0, 0.1])
@with_each_format
def test_residual_norm_and_its_gradients_equal_torchs(
    rows: int, width: int, rate: float, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute() -> list[Tensor]:
        norm = ResidualNorm(width, eps=1e-5, dropout=Dropout(rate)).train()
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        states, update = (
            torch.randn(rows, width, requires_grad=True),
            torch.randn(rows, width).to(dtype).requires_grad_(),
        )
        output = norm(states, update)
        torch.autograd.backward(output, torch.randn(rows, width))
        inputs = (states, update, norm.weight, norm.bias)
        return [output.detach(), *(each.grad for each in inputs if each.grad is not None)]

    assert_close(run(compute), torchs(monkeypatch, compute))


@needs_compiler
@pytest.mark.parametrize(("rows", "labelled", "vocab"), [(1, 1, 2), (9, 7, 13), (40, 37, 30_011), (3, 0, 5)])
@with_each_format
def test_cross_entropy_and_its_gradient_equal_torchs(rows: int, labelled: int, vocab: int, dtype: torch.dtype) -> None:
    logits = (5 * torch.randn(rows, vocab)).to(dtype).requires_grad_()
    labels = torch.randint(0, vocab, (labelled,))
    loss = sum_cross_entropy(logits, labels)
    torch.autograd.backward(loss * 0.25)
    reference = logits.detach().float().requires_grad_()
    expected = F.cross_entropy(reference[:labelled], labels, reduction="sum")
    torch.autograd.backward(expected * 0.25)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    assert logits.grad is not None
    assert reference.grad is not None
    torch.testing.assert_close(logits.grad.float(), reference.grad, rtol=0.004, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@with_each_format
def test_what_is_not_finite_stays_visible(bad: float, dtype: torch.dtype) -> None:
    logits = torch.randn(3, 40).to(dtype)
    logits[1, 5] = bad
    assert not sum_cross_entropy(logits.requires_grad_(), torch.tensor([0, 1, 2])).isfinite()
    states, update = torch.randn(3, 40), torch.randn(3, 40).to(dtype)
    update[1, 5] = bad
    output, _ = fused_training.residual_norm(states, update, torch.ones(40), torch.zeros(40), 1e-5, None)
    assert output[1].isnan().all()
    assert output[[0, 2]].isfinite().all()
    assert fused_training.softmax_dropout(logits.detach()[None], None, None)[0][0, 1].isnan().any()
    assert not fused_training.dropout(logits.detach(), draw_mask(0.01))[1].isfinite().all()


@needs_compiler
def test_losses_and_gradients_do_not_depend_on_the_default_number_format() -> None:
    def compute() -> list[Tensor]:
        norm = ResidualNorm(40, eps=1e-5, dropout=Dropout(0.1)).train().float()
        states = torch.randn(70, 40, dtype=torch.float32).requires_grad_()
        loss = sum_cross_entropy(norm(states, 2 * states), torch.arange(30))
        return [loss.detach(), *torch.autograd.grad(loss, [states, *norm.parameters()])]

    expected = run(compute)
    torch.set_default_dtype(torch.float64)
    try:
        found = run(compute)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(map(torch.equal, found, expected))


@needs_compiler
@with_each_format
def test_the_number_of_threads_changes_nothing(dtype: torch.dtype) -> None:
    results = []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        torch.manual_seed(7)
        states, update, gradient = torch.randn(300, 64), torch.randn(300, 64).to(dtype), torch.randn(300, 64)
        weight, mask = torch.randn(64), draw_mask(0.1)
        output, kept = fused_training.residual_norm(states, update, weight, torch.zeros(64), 1e-5, mask)
        results.append([output, *fused_training.residual_norm_backward(gradient, kept, weight, mask, dtype)])
    assert all(map(torch.equal, *results))


@needs_compiler
def test_they_apply_to_float32_and_bfloat16_on_a_cpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fused_training.supports(torch.zeros(1, dtype=torch.bfloat16))
    assert fused_training.supports(torch.zeros(1))
    assert not fused_training.supports(torch.zeros(1, dtype=torch.float64))
    assert not fused_training.supports(torch.zeros(1, dtype=torch.bfloat16, device="meta"))
    monkeypatch.setattr(fused, "_library", lambda: None)
    assert not fused_training.supports(torch.zeros(1, dtype=torch.bfloat16))


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_norm_in_another_format_is_left_to_torch(dtype: torch.dtype) -> None:
    norm, states = ResidualNorm(8, eps=1e-5, dropout=Dropout(0.0)).to(dtype), torch.randn(3, 8)
    with pytest.raises(RuntimeError, match="mixed dtype"):
        norm(states, bfloat16(3, 8).requires_grad_())


@needs_compiler
def test_states_of_three_dimensions_and_a_norm_without_bias_are_left_to_torch() -> None:
    norm, update = ResidualNorm(8, eps=1e-5, dropout=Dropout(0.0)), bfloat16(2, 3, 8).requires_grad_()
    assert norm(torch.randn(2, 3, 8), update).shape == (2, 3, 8)
    norm.register_parameter("bias", None)
    assert norm(torch.randn(3, 8), update[0]).isfinite().all()


@needs_compiler
def test_labels_may_have_another_integer_type() -> None:
    logits, labels = bfloat16(4, 9).requires_grad_(), torch.tensor([1, 0, 2, 8])
    gradients = [
        torch.autograd.grad(sum_cross_entropy(logits, labels.to(dtype)), [logits])[0]
        for dtype in (torch.int64, torch.int32)
    ]
    assert torch.equal(*gradients)


@needs_compiler
def test_a_second_derivative_is_refused() -> None:
    norm = ResidualNorm(8, eps=1e-5, dropout=Dropout(0.0))
    states, update = torch.randn(3, 8, requires_grad=True), bfloat16(3, 8).requires_grad_()
    (gradient,) = torch.autograd.grad(norm(states, update).pow(2).sum(), [states], create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        torch.autograd.backward(gradient.sum())
