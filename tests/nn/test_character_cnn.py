"""The character CNN against its formula, filter by filter, and the count of its operations."""

from __future__ import annotations

import torch
from torch import nn

from bertkit.nn.character_cnn import CharacterCnn


def make_cnn() -> CharacterCnn:
    return CharacterCnn(embedding=nn.Embedding(31, 3), filters=[(1, 4), (2, 5), (7, 2)], activation=nn.ReLU())


@torch.no_grad()
def test_every_filter_gives_its_maximum_over_the_word() -> None:
    cnn = make_cnn()
    words = torch.randint(31, (6, 7))
    vectors = cnn(words)
    assert vectors.shape == (6, 11)
    for word, vector in zip(words, vectors, strict=True):
        embedded = cnn.embedding(word)
        expected = []
        for convolution in cnn.convolutions:
            for weight, bias in zip(*convolution.parameters(), strict=True):
                width = weight.shape[1]
                starts = range(7 - width + 1)
                expected.append(max(float((embedded[at : at + width].T * weight).sum() + bias) for at in starts))
        torch.testing.assert_close(vector, torch.tensor(expected).clamp(min=0), rtol=0, atol=1e-5)


def test_every_filter_counts_once_per_position() -> None:
    assert make_cnn().count_macs(7) == 7 * (3 * 4 * 1) + 6 * (3 * 5 * 2) + 1 * (3 * 2 * 7)


def test_resetting_depends_on_the_seed_only() -> None:
    first, second = make_cnn(), make_cnn()
    for cnn in (first, second):
        torch.manual_seed(5)
        cnn.reset_parameters()
    words = torch.randint(31, (6, 7))
    assert torch.equal(first(words), second(words))
