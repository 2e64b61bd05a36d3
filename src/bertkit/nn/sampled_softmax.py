"""Sampled softmax: over the target word and S sampled words instead of the whole vocabulary (Jean et al. 2014).

As ``sampled_softmax_loss`` of TensorFlow 1, which ELMo was trained with (arXiv 1412.2007). Words are numbered by
descending frequency, and word k is sampled with the log-uniform probability ``log((k + 2) / (k + 1)) / log(V + 1)``,
which is close to Zipf's law. Sampling continues until S different words are found. The logarithm of the probability
that a word is in the sample is subtracted from its logit, which corrects for frequent words being sampled more often. A
sampled word that equals the target of a row is excluded for that row.

Letters: M rows, E their width, V vocabulary, S sampled words, R = 1 + S, N any words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Samples(NamedTuple):
    """S different words (on the CPU), and the number of draws until they were found."""

    words: Tensor
    draws: int


def sample_words(count: int, vocab_size: int) -> Samples:
    """``count`` different words of the vocabulary, from torch's generator, in the order of their first draw."""
    assert 0 < count < vocab_size, f"cannot sample {count} of {vocab_size} words"
    drawn = torch.empty(0, dtype=torch.long)
    while True:
        uniform = torch.rand(max(count, len(drawn)), dtype=torch.float64)
        # Inverse transform sampling of the log-uniform distribution.
        more = torch.expm1(uniform * math.log1p(vocab_size)).long().clamp(max=vocab_size - 1)
        drawn = torch.cat([drawn, more])
        distinct, inverse = torch.unique(drawn, return_inverse=True)
        if len(distinct) >= count:
            break
    # The index of the first draw of every word, sorted: the order in which words were found.
    first = torch.full_like(distinct, len(drawn)).scatter_reduce_(0, inverse, torch.arange(len(drawn)), "amin")
    first = first.sort().values[:count]
    return Samples(drawn[first], int(first[-1]) + 1)


def inclusion_probabilities(words: Int[Tensor, " N"], draws: int, vocab_size: int) -> Float[Tensor, " N"]:
    """The probability that each word is in a sample of ``draws`` draws: ``1 - (1 - p) ** draws``.

    Unlike TensorFlow, which uses ``p * draws`` if no word was drawn twice; that almost never happens.
    """
    ranks = words.double()  # float32 has too few digits for the rare words of ELMo's 793,471
    probabilities = torch.log1p(1 / (ranks + 1)) / math.log1p(vocab_size)
    return -torch.expm1(draws * torch.log1p(-probabilities)).float()


def sample_logits(
    rows: Float[Tensor, "M E"],
    targets: Int[Tensor, " M"],
    weight: Float[Tensor, "V E"],
    bias: Float[Tensor, " V"],
    samples: Samples,
) -> Float[Tensor, "M R"]:
    """The corrected logits of each row's target word (column 0) and of the sampled words (columns 1 to S)."""
    vocab_size = len(weight)
    words = samples.words.to(rows.device, non_blocking=True)
    of_target = (rows * weight[targets]).sum(dim=1) + bias[targets]
    of_words = torch.addmm(bias[words], rows, weight[words].T)
    of_target = of_target - inclusion_probabilities(targets, samples.draws, vocab_size).log()
    of_words = of_words - inclusion_probabilities(words, samples.draws, vocab_size).log()
    of_words = of_words.masked_fill(words == targets.unsqueeze(1), -math.inf)
    return torch.cat([of_target.unsqueeze(1), of_words], dim=1)
