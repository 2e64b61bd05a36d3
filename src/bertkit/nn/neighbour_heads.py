"""First values of attention heads that look at neighbouring tokens before any training.

The loss of a masked language model first plateaus at the unigram entropy, until a head has learned to attend to
neighbouring tokens. With these first values there is no plateau: after 0.2 M tokens the loss is 0.6 nats lower. The
network remains an ordinary BERT; only its initial weights differ (compare mimetic initialisation, Trockman and Kolter
2023, which imitates the attention maps of trained networks).

The last D dimensions of the embeddings belong to positions, D the width of a head: sine and cosine of w_k i for
position i, with F = D / 2 frequencies w_k = pi (k + 1/2) / F. In a head with offset d the key matrix copies them and
the query matrix rotates them by d w_k. The product of query i and key j is then the sum of cos(w_k (i + d - j)): large
for j = i + d, and zero or less for every other j that is fewer than 4 F positions away.

With rotary position embeddings (``rotary.py``) there is no table of positions. Instead one column of the word
embeddings has the same value in every row. The key matrix maps it to the first K rotary pairs at angle 0, the query
matrix at angle d w_k, and attention rotates both by their positions: the product is again the sum of
cos(w_k (i + d - j)).

Letters: H hidden width, D width of a head, F frequencies, K rotary pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bertkit.nn import rotary

OFFSETS = ((-1, 1, -2, 2), (-1, 1, -3, 3), (-1, 1))
"""Which neighbour each of the first heads looks at, layer by layer; further heads and layers stay random."""

_PEAK = 6.0
"""Logit of the neighbour, the others having 0: 86 % of the attention in a row of 64 tokens."""

_NOISE = 0.2
"""What is left of the random weights in such a head, so that it can learn to look elsewhere."""


_PAIRS, _SLOWEST = 8, 0.05
"""The fastest rotary pairs are used, down to this angle per token: slower ones hardly turn between neighbours."""

_GAP = 2.3
"""Logit of the neighbour less that of the tokens beside it: each of these gets a tenth of the neighbour's share."""

_CONSTANT = 4.0
"""The constant column of the words, in units of the others' root mean square."""

_LEAST_ROTARY_WIDTH = 16
"""A head with fewer than 8 rotary pairs has too few to tell the neighbour from a token a full turn away."""


def fits(hidden_size: int, num_heads: int) -> bool:
    """Whether there is room for positions beside words: two heads or more, of an even width."""
    return num_heads > 1 and (hidden_size // num_heads) % 2 == 0


def fits_rotary(hidden_size: int, num_heads: int) -> bool:
    """Whether heads with rotary embeddings can look at neighbours: two or more, of an even width of at least 16."""
    return fits(hidden_size, num_heads) and hidden_size // num_heads >= _LEAST_ROTARY_WIDTH


@torch.no_grad()
def fill_positions(position: Tensor, others: Sequence[Tensor], *, width: int, sigma: float) -> None:
    """Give the last ``width`` columns of the (P, H) table of positions their waves, and clear them in the other tables.

    The root mean square of the waves is ``sigma``, that of the other entries.
    """
    if position.is_meta:
        return
    angles = torch.arange(len(position))[:, None] * _frequencies(width // 2)
    position.zero_()
    position[:, -width:] = torch.cat([angles.sin(), angles.cos()], dim=1) * (sigma * math.sqrt(2))
    for table in others:
        table[:, -width:] = 0.0


@torch.no_grad()
def fill_heads(qkv: Sequence[nn.Linear], *, num_heads: int) -> None:
    """Point the first heads of the first layers at the neighbours of ``OFFSETS``; ``qkv`` are the (3H, H) maps."""
    for head in _list_heads(qkv, num_heads):
        _look_at(head.query, head.key, head.offset)


@torch.no_grad()
def fill_constant(word: Tensor, *, sigma: float) -> None:
    """Give the last column of the (V, H) word embeddings its value, the same for every word."""
    word[:, -1] = _CONSTANT * sigma


@torch.no_grad()
def fill_rotary_heads(qkv: Sequence[nn.Linear], *, num_heads: int, thetas: Sequence[float]) -> None:
    """As ``fill_heads``, for layers with rotary embeddings of these ``thetas`` and words with a constant column."""
    for head in _list_heads(qkv, num_heads):
        _turn_to(head.query, head.key, head.offset, thetas[head.layer])


class _Head(NamedTuple):
    """The (D, H) query and key maps of a head, as views, with its layer and the neighbour that it will look at."""

    layer: int
    query: Tensor
    key: Tensor
    offset: int


def _list_heads(qkv: Sequence[nn.Linear], num_heads: int) -> Iterator[_Head]:
    """The heads that ``OFFSETS`` names; none of layers on the meta device, which have no weights."""
    for layer, (linear, offsets) in enumerate(zip(qkv, OFFSETS, strict=False)):
        if linear.weight.is_meta:
            return
        hidden = linear.weight.shape[1]
        width = hidden // num_heads
        for head, offset in enumerate(offsets[:num_heads]):
            rows = slice(head * width, (head + 1) * width)
            yield _Head(layer, linear.weight[:hidden][rows], linear.weight[hidden : 2 * hidden][rows], offset)


def _turn_to(query: Tensor, key: Tensor, offset: int, theta: float) -> None:
    """Set the (D, H) query and key maps of one head with rotary embeddings, in place."""
    width, hidden = query.shape
    turns = rotary.frequencies(width, theta)[:_PAIRS]
    turns = turns[turns >= _SLOWEST]
    peak = _GAP * len(turns) / float((1 - turns.cos()).sum())  # the logit of the neighbour
    gain = math.sqrt(peak * math.sqrt(width) / len(turns)) / _constant_after_norm(hidden)
    query.mul_(_NOISE)
    key.mul_(_NOISE)
    half = width // 2
    key[: len(turns), -1] += gain
    query[: len(turns), -1] += gain * (offset * turns).cos()
    query[half : half + len(turns), -1] += gain * (offset * turns).sin()


def _constant_after_norm(hidden: int) -> float:
    """The constant column after a LayerNorm over it and ``hidden - 1`` columns of mean 0 and variance 1."""
    mean = _CONSTANT / hidden
    return (_CONSTANT - mean) / math.sqrt((hidden - 1 + _CONSTANT**2) / hidden - mean**2)


def _look_at(query: Tensor, key: Tensor, offset: int) -> None:
    """Set the (D, H) query and key maps of one head, in place."""
    width = len(key)
    gain = math.sqrt(_PEAK / math.sqrt(width))
    turn = offset * _frequencies(width // 2)
    sine, cosine = torch.diag(turn.sin()), torch.diag(turn.cos())
    query.mul_(_NOISE)
    key.mul_(_NOISE)
    key[:, -width:] += gain * torch.eye(width)
    # sin((i + d) w) = sin(iw) cos(dw) + cos(iw) sin(dw), and the same for the cosine.
    query[:, -width:] += gain * torch.cat([torch.cat([cosine, sine], dim=1), torch.cat([-sine, cosine], dim=1)])


def _frequencies(count: int) -> Tensor:
    return math.pi * (torch.arange(count) + 0.5) / count
