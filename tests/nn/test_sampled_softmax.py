"""The distribution of the sampler, and the sampled logits against their formula, word by word."""

from __future__ import annotations

import math

import pytest
import torch

from bertkit.nn.sampled_softmax import Samples, inclusion_probabilities, sample_logits, sample_words


def probability(word: int, vocab_size: int) -> float:
    return math.log((word + 2) / (word + 1)) / math.log(vocab_size + 1)


def test_probabilities_equal_the_formula_and_sum_to_one() -> None:
    found = inclusion_probabilities(torch.arange(99), 1, 99)
    torch.testing.assert_close(found, torch.tensor([probability(word, 99) for word in range(99)]))
    torch.testing.assert_close(found.sum(), torch.tensor(1.0))


def test_a_word_is_included_unless_every_draw_misses_it() -> None:
    found = inclusion_probabilities(torch.tensor([0, 7, 98]), 37, 99)
    torch.testing.assert_close(found, torch.tensor([1 - (1 - probability(word, 99)) ** 37 for word in (0, 7, 98)]))


def test_the_probability_of_a_rare_word_is_precise() -> None:
    (found,) = inclusion_probabilities(torch.tensor([793_470]), 1, 793_471).tolist()
    assert found == pytest.approx(probability(793_470, 793_471), rel=1e-4)


@pytest.mark.parametrize(("count", "vocab_size"), [(1, 2), (7, 99), (98, 99), (13, 100_003)])
def test_sampled_words_are_different_words_of_the_vocabulary(count: int, vocab_size: int) -> None:
    words, draws = sample_words(count, vocab_size)
    assert len(set(words.tolist())) == len(words) == count
    assert 0 <= int(words.min()) <= int(words.max()) < vocab_size
    assert draws >= count


def test_words_are_sampled_with_their_probabilities() -> None:
    """The first word of a sample is one draw of the distribution; the counts of 4,000 are within 4 sigma."""
    firsts = torch.stack([sample_words(3, 13).words[0] for _ in range(4000)]).bincount(minlength=13)
    for word, count in enumerate(firsts.tolist()):
        expected = 4000 * probability(word, 13)
        assert abs(count - expected) < 4 * math.sqrt(expected)


def test_inclusion_probabilities_are_the_frequencies_of_words_in_samples() -> None:
    """Over many samples, the frequency of a word is the mean of ``inclusion_probabilities``."""
    seen, expected = torch.zeros(13), torch.zeros(13)
    for _ in range(2000):
        words, draws = sample_words(5, 13)
        seen[words] += 1
        expected += inclusion_probabilities(torch.arange(13), draws, 13)
    assert (seen / 2000 - expected / 2000).abs().max() < 0.06


def test_samples_depend_on_torchs_random_state_only() -> None:
    torch.manual_seed(3)
    first = sample_words(37, 99)
    torch.manual_seed(3)
    again = sample_words(37, 99)
    assert torch.equal(first.words, again.words)
    assert first.draws == again.draws


def test_sampled_logits_equal_the_formula() -> None:
    rows, weight, bias = torch.randn(4, 5), torch.randn(13, 5), torch.randn(13)
    targets = torch.tensor([7, 0, 12, 3])
    samples = Samples(torch.tensor([3, 0, 9]), 6)

    def logit(row: int, word: int) -> float:
        expected = 1 - (1 - probability(word, 13)) ** 6
        return float(rows[row] @ weight[word] + bias[word]) - math.log(expected)

    found = sample_logits(rows, targets, weight, bias, samples)
    for row, word in enumerate(targets.tolist()):
        others = [-math.inf if other == word else logit(row, other) for other in (3, 0, 9)]
        torch.testing.assert_close(found[row], torch.tensor([logit(row, word), *others]), rtol=1e-5, atol=1e-5)


def test_with_all_words_sampled_it_equals_the_full_softmax() -> None:
    """With a million draws every inclusion probability is 1, so nothing is subtracted."""
    rows, weight, bias = torch.randn(4, 5), torch.randn(13, 5), torch.randn(13)
    targets = torch.tensor([7, 0, 12, 3])
    found = sample_logits(rows, targets, weight, bias, Samples(torch.arange(13), 10**6))
    ours = found[:, 0] - found.logsumexp(dim=1)
    torch.testing.assert_close(ours, (rows @ weight.T + bias).log_softmax(dim=1)[torch.arange(4), targets])
