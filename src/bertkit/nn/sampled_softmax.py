"""A softmax over the right word and some drawn ones, in place of the whole vocabulary (Jean et al., arXiv 1412.2007).

As ``sampled_softmax_loss`` of TensorFlow 1, which ELMo was trained with. Words are numbered by falling frequency, and
word k is drawn with the chance ``log((k + 2) / (k + 1)) / log(V + 1)``, which is near Zipf's law; drawing goes on until
enough different words are there. A word that is drawn often says little by being there, so the logarithm of how often
it was to be expected is taken off its logit; and a drawn word that is the right one is no wrong answer: it is left out.

Letters: M rows, E their width, V vocabulary, S drawn words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Samples(NamedTuple):
    """S words that differ, and how many draws it took to find them; both on the CPU."""

    words: Tensor
    draws: int


def sample_words(count: int, vocab_size: int) -> Samples:
    """``count`` words out of more, from torch's generator, in the order in which they were first drawn."""
    assert 0 < count < vocab_size, f"{count} of {vocab_size} words cannot be drawn"
    drawn = torch.empty(0, dtype=torch.long)
    while True:
        uniform = torch.rand(max(count, len(drawn)), dtype=torch.float64)
        more = torch.expm1(uniform * math.log1p(vocab_size)).long().clamp(max=vocab_size - 1)
        drawn = torch.cat([drawn, more])
        found, places = torch.unique(drawn, return_inverse=True)
        if len(found) >= count:
            break
    first = torch.full_like(found, len(drawn)).scatter_reduce_(0, places, torch.arange(len(drawn)), "amin")
    first = first.sort().values[:count]
    return Samples(drawn[first], int(first[-1]) + 1)


def inclusion_probabilities(words: Int[Tensor, " N"], draws: int, vocab_size: int) -> Float[Tensor, " N"]:
    """The chance of each word to be among those of so many draws: ``1 - (1 - p) ** draws``.

    Departure from TensorFlow: it takes ``p * draws`` where no word came twice, which is hardly ever.
    """
    ranks = words.double()
    chances = torch.log1p(1 / (ranks + 1)) / math.log1p(vocab_size)
    return -torch.expm1(draws * torch.log1p(-chances)).float()


def sample_logits(
    rows: Float[Tensor, "M E"],
    right: Int[Tensor, " M"],
    weight: Float[Tensor, "V E"],
    bias: Float[Tensor, " V"],
    samples: Samples,
) -> Float[Tensor, "M R"]:
    """(M, 1 + S): the logit of each row's right word, and behind it those of the drawn words."""
    vocab_size = len(weight)
    words = samples.words.to(rows.device, non_blocking=True)
    of_right = (rows * weight[right]).sum(dim=1) + bias[right]
    of_words = torch.addmm(bias[words], rows, weight[words].T)
    of_right = of_right - inclusion_probabilities(right, samples.draws, vocab_size).log()
    of_words = of_words - inclusion_probabilities(words, samples.draws, vocab_size).log()
    of_words = of_words.masked_fill(words == right.unsqueeze(1), -math.inf)
    return torch.cat([of_right.unsqueeze(1), of_words], dim=1)
