"""Attention on AMX against torch's in float32."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.on_amx import needs_amx
from torch import Tensor
from torch.nn import functional as F

from bertkit.kernels import amx, amx_attention
from bertkit.kernels.amx_attention import RowLengths
from bertkit.nn.dropout import draw_mask, find_kept


def distance(actual: Tensor, expected: Tensor) -> float:
    """The error, as a share of the norm of what is expected."""
    return float((actual.float() - expected).norm() / expected.norm().clamp(min=1e-6))


@needs_amx
@pytest.mark.parametrize(
    ("examples", "heads", "queries", "keys", "size"),
    [
        (2, 3, 5, 7, 8),
        (4, 2, 33, 65, 64),
        (2, 2, 128, 128, 64),
        (1, 2, 300, 500, 64),
        (3, 1, 1, 1, 16),
        (4, 3, 13, 13, 32),
    ],
)
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("masked", ["no", "keys", "all", "shared"])
def test_attention_and_its_gradients(
    examples: int, heads: int, queries: int, keys: int, size: int, rate: float, masked: str
) -> None:
    maps = examples * heads
    own, others, values = (torch.randn(maps, length, size).bfloat16() for length in (queries, keys, keys))
    allowed = None
    if masked != "no":
        shape = {"keys": (examples, 1, keys), "all": (examples, queries, keys), "shared": (1, queries, keys)}[masked]
        allowed = torch.rand(shape) < 0.7
        allowed[..., 0] = True
    mask = draw_mask(rate) if rate else None
    attended = amx_attention.attend(own, others, values, allowed, mask)

    query, key, value = exact = [each.float().requires_grad_() for each in (own, others, values)]
    scores = (query @ key.transpose(1, 2) * size**-0.5).view(examples, heads, queries, keys)
    if allowed is not None:
        scores = scores.masked_fill(~allowed[:, None], float("-inf"))
    shares = scores.softmax(dim=-1).view(maps, queries, keys)
    scale = 1.0 if mask is None else mask.scale
    kept = 1.0 if mask is None else find_kept(shares.shape, mask)
    context = (shares * kept * scale) @ value
    assert distance(attended.context, context.detach()) < 0.006
    assert distance(attended.probabilities, shares.detach()) < 0.004
    assert torch.equal(attended.dropped, (attended.probabilities * kept).bfloat16())
    if allowed is not None:  # exactly 0, and not e^-100
        hidden = ~allowed[:, None].expand(examples, heads, queries, keys).reshape(maps, queries, keys)
        assert not attended.probabilities[hidden].any()

    upstream = torch.randn(maps, queries, size).bfloat16()
    context.backward(upstream.float())
    gradients = tuple(torch.empty_like(each) for each in (own, others, values))
    amx_attention.attend_backward(
        upstream, own, others, values, attended.probabilities, attended.dropped, scale, gradients
    )
    for actual, expected in zip(gradients, exact, strict=True):
        assert expected.grad is not None
        assert distance(actual, expected.grad) < 0.01


@needs_amx
@pytest.mark.parametrize(
    ("query_lengths", "key_lengths"),
    [([70, 13, 33, 1], [70, 13, 33, 1]), ([3, 1, 2, 0], [70, 13, 33, 5]), ([2, 0, 1, 1], [40, 0, 32, 31])],
)
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_what_is_beyond_the_last_token_of_a_row_is_left_out(
    query_lengths: list[int], key_lengths: list[int], rate: float
) -> None:
    """Tokens get the same bits as when padding is computed too; the results of padding are 0."""
    heads, size = 3, 32
    queries, keys = max(query_lengths), max(key_lengths)
    maps = heads * len(key_lengths)
    asks = (torch.arange(queries) < torch.tensor(query_lengths)[:, None]).repeat_interleave(heads, 0)
    exists = torch.arange(keys) < torch.tensor(key_lengths)[:, None]
    exists[torch.tensor(key_lengths) == 0, 0] = True  # a softmax over nothing would be NaN
    query, key, value = (torch.randn(maps, length, size).bfloat16() for length in (queries, keys, keys))
    upstream = torch.randn(maps, queries, size).bfloat16() * asks[:, :, None]
    mask = draw_mask(rate) if rate else None
    scale = 1.0 if mask is None else mask.scale

    def compute(lengths: RowLengths) -> list[Tensor]:
        attended = amx_attention.attend(query, key, value, exists[:, None], mask, lengths)
        gradients = tuple(torch.full_like(each, float("nan")) for each in (query, key, value))
        parts = attended.probabilities, attended.dropped
        amx_attention.attend_backward(upstream, query, key, value, *parts, scale, gradients, lengths)
        return [attended.context, *gradients]

    whole = compute(amx_attention.ALL_TOKENS)
    found = compute(RowLengths(torch.tensor(query_lengths), torch.tensor(key_lengths)))
    assert torch.equal(found[0], whole[0] * asks[:, :, None])
    for each, expected in zip(found[1:], whole[1:], strict=True):
        assert torch.equal(each, expected)


@needs_amx
@pytest.mark.parametrize(
    ("rows", "queries", "keys"), [(3, 7, 7), (2, 40, 40), (2, 1, 90), (1, 200, 200), (1, 1500, 1500)]
)
def test_rows_of_a_list_are_attended_in_place(rows: int, queries: int, keys: int) -> None:
    heads, width = 4, 4 * 32
    lists = torch.randn(rows * keys, 3 * width).bfloat16()
    query, key, value = lists[: rows * queries, :width], lists[:, width : 2 * width], lists[:, 2 * width :]
    out = torch.empty(rows * queries, width, dtype=torch.bfloat16)
    amx_attention.attend_rows(query, key, value, out, rows=rows, heads=heads)
    q, k, v = (each.float().view(rows, -1, heads, 32).transpose(1, 2) for each in (query, key, value))
    expected = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(out.shape)
    assert distance(out, expected) < 0.006


@needs_amx
def test_a_query_that_may_attend_to_nothing_gives_nan_and_no_other_does() -> None:
    query = torch.randn(1, 3, 16).bfloat16()
    allowed = torch.ones(1, 3, 5, dtype=torch.bool)
    allowed[0, 1] = False
    key = torch.randn(1, 5, 16).bfloat16()
    context = amx_attention.attend(query, key, key, allowed, None).context
    assert context[0, 1].isnan().all()
    assert context[0, [0, 2]].isfinite().all()


@needs_amx
def test_large_scores_and_nan() -> None:
    query, key = 300 * torch.randn(1, 40, 32).bfloat16(), torch.randn(1, 40, 32).bfloat16()
    attended = amx_attention.attend(query, key, key, None, None)
    assert attended.context.isfinite().all()
    expected = (query.float() @ key.float().transpose(1, 2) * 32**-0.5).softmax(-1)
    assert distance(attended.probabilities, expected) < 0.006
    query[0, 7, 3] = float("nan")
    context = amx_attention.attend(query, key, key, None, None).context
    assert context[0, 7].isnan().all()
    assert context[0, 8].isfinite().all()


@needs_amx
def test_it_applies_to_lengths_whose_tiles_have_room() -> None:
    def applies(queries: int, keys: int, dtype: torch.dtype = torch.bfloat16) -> bool:
        return amx_attention.supports(queries, keys, 64, dtype)

    assert applies(704, 704)
    assert applies(1, 1536)
    assert not applies(704, 768)
    assert not applies(417, 1200)
    assert not applies(1, 1537)
    assert not applies(2000, 32)
    assert not applies(0, 5)
    assert not applies(5, 0)
    assert not applies(5, 5, torch.float32)
    assert not amx_attention.supports(5, 5, 1600, torch.bfloat16)


def test_without_amx_it_never_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amx, "_permission", lambda: 0)
    assert not amx_attention.supports(5, 5, 64, torch.bfloat16)
