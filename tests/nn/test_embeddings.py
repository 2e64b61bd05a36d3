"""Input embeddings against their formulas, and rows that are too long."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertkit.errors import BertkitError
from bertkit.nn.embeddings import Embeddings, PlainEmbeddings

B, T, H = 3, 13, 28


def make_embeddings(num_positions: int, first_position: int = 0) -> Embeddings:
    return Embeddings(
        word=nn.Embedding(99, H),
        position=nn.Embedding(num_positions, H),
        segment=nn.Embedding(2, H),
        norm=nn.LayerNorm(H, eps=1e-12),
        dropout=nn.Identity(),
        first_position=first_position,
    )


@pytest.mark.parametrize("first_position", [0, 2])
def test_embeddings_are_a_normalised_sum(first_position: int) -> None:
    embeddings = make_embeddings(37, first_position)
    ids, segments = torch.randint(0, 99, (B, T)), torch.randint(0, 2, (B, T))
    positions = torch.arange(first_position, first_position + T)
    summed = embeddings.word(ids) + embeddings.position(positions) + embeddings.segment(segments)
    centred = summed - summed.mean(dim=-1, keepdim=True)
    expected = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-12).sqrt()
    torch.testing.assert_close(embeddings(ids, segments), expected, rtol=0, atol=1e-5)


def test_plain_embeddings_are_a_sum() -> None:
    embeddings = PlainEmbeddings(word=nn.Embedding(99, H), position=nn.Embedding(37, H), dropout=nn.Identity())
    ids = torch.randint(0, 99, (B, T))
    expected = embeddings.word(ids) + embeddings.position(torch.arange(T))
    torch.testing.assert_close(embeddings(ids), expected)


@pytest.mark.parametrize(("num_positions", "first_position"), [(12, 0), (14, 2)])
def test_a_row_longer_than_the_position_table_is_a_usage_error(num_positions: int, first_position: int) -> None:
    ids = torch.zeros(B, T, dtype=torch.long)
    with pytest.raises(BertkitError, match="rows of 13 tokens, but the model has 12 positions; shorten the text"):
        make_embeddings(num_positions, first_position)(ids, ids)
