"""The sampler by its distribution, and the sampled logits by their formula, word by word."""

from __future__ import annotations

import math

import pytest
import torch

from bertkit.nn.sampled_softmax import Samples, inclusion_probabilities, sample_logits, sample_words


def chance(word: int, vocab_size: int) -> float:
    return math.log((word + 2) / (word + 1)) / math.log(vocab_size + 1)


def test_chances_are_the_formula_and_add_up_to_one() -> None:
    found = inclusion_probabilities(torch.arange(99), 1, 99)
    torch.testing.assert_close(found, torch.tensor([chance(word, 99) for word in range(99)]))
    torch.testing.assert_close(found.sum(), torch.tensor(1.0))


def test_a_word_is_to_be_expected_unless_every_draw_misses_it() -> None:
    found = inclusion_probabilities(torch.tensor([0, 7, 98]), 37, 99)
    torch.testing.assert_close(found, torch.tensor([1 - (1 - chance(word, 99)) ** 37 for word in (0, 7, 98)]))


def test_rare_words_keep_their_digits() -> None:
    (found,) = inclusion_probabilities(torch.tensor([793_470]), 1, 793_471).tolist()
    assert found == pytest.approx(chance(793_470, 793_471), rel=1e-4)


@pytest.mark.parametrize(("count", "vocab_size"), [(1, 2), (7, 99), (98, 99), (13, 100_003)])
def test_drawn_words_differ_and_are_words(count: int, vocab_size: int) -> None:
    words, draws = sample_words(count, vocab_size)
    assert len(set(words.tolist())) == len(words) == count
    assert 0 <= int(words.min()) <= int(words.max()) < vocab_size
    assert draws >= count


def test_words_come_as_often_as_they_should() -> None:
    """The first word of a draw is one draw of the distribution; 4,000 of them are within 4 sigma of it everywhere."""
    firsts = torch.stack([sample_words(3, 13).words[0] for _ in range(4000)]).bincount(minlength=13)
    for word, count in enumerate(firsts.tolist()):
        expected = 4000 * chance(word, 13)
        assert abs(count - expected) < 4 * math.sqrt(expected)


def test_a_word_is_drawn_as_often_as_is_taken_off() -> None:
    """Over many samples, the frequency of a word is the mean of ``inclusion_probabilities``."""
    seen, expected = torch.zeros(13), torch.zeros(13)
    for _ in range(2000):
        words, draws = sample_words(5, 13)
        seen[words] += 1
        expected += inclusion_probabilities(torch.arange(13), draws, 13)
    assert (seen / 2000 - expected / 2000).abs().max() < 0.06


def test_draws_are_a_function_of_the_random_state() -> None:
    torch.manual_seed(3)
    first = sample_words(37, 99)
    torch.manual_seed(3)
    again = sample_words(37, 99)
    assert torch.equal(first.words, again.words)
    assert first.draws == again.draws


def test_logits_are_the_formula() -> None:
    rows, weight, bias = torch.randn(4, 5), torch.randn(13, 5), torch.randn(13)
    right = torch.tensor([7, 0, 12, 3])
    samples = Samples(torch.tensor([3, 0, 9]), 6)

    def logit(row: int, word: int) -> float:
        expected = 1 - (1 - chance(word, 13)) ** 6
        return float(rows[row] @ weight[word] + bias[word]) - math.log(expected)

    found = sample_logits(rows, right, weight, bias, samples)
    for row, word in enumerate(right.tolist()):
        others = [-math.inf if other == word else logit(row, other) for other in (3, 0, 9)]
        torch.testing.assert_close(found[row], torch.tensor([logit(row, word), *others]), rtol=1e-5, atol=1e-5)


def test_with_every_other_word_drawn_for_certain_it_is_the_full_softmax() -> None:
    """So many draws that every word was to be expected: nothing is taken off, and the loss is the whole one's."""
    rows, weight, bias = torch.randn(4, 5), torch.randn(13, 5), torch.randn(13)
    right = torch.tensor([7, 0, 12, 3])
    found = sample_logits(rows, right, weight, bias, Samples(torch.arange(13), 10**6))
    ours = found[:, 0] - found.logsumexp(dim=1)
    torch.testing.assert_close(ours, (rows @ weight.T + bias).log_softmax(dim=1)[torch.arange(4), right])
