"""Confidence intervals of scores: percentile bootstrap over examples (Efron 1979), vectorised over resamples.

A ``Statistic`` maps resamples, given as indices (R, N) of N examples, to K scores of each, (R, K). Two statistics with
the same number of examples and the same seed get the same resamples, so their difference is a paired bootstrap.

The scores are computed here and not by scikit-learn, which scores one resample per call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from bertkit.metrics.classification import require_pairs
from bertkit.metrics.entities import find_entities
from bertkit.optional import load
from bertkit.scores import UNDEFINED, kind_of

Indices = NDArray[np.int64]
Scores = NDArray[np.float64]
Statistic = Callable[[Indices], Scores]

RESAMPLES = 1000
LEVEL = 0.95
FEWEST = 5
"""Examples from which on a correlation or an error has an interval. Resamples of a single one are all equal."""

_Z = 1.959964
"""The middle 95 % of a normal distribution reach this many standard deviations to each side."""

_DEVIATION_OF_ERRORS = 0.756
"""The standard deviation of the absolute values of normal errors, in parts of their mean: sqrt(pi / 2 - 1)."""

_NEARLY_ONE = 0.999
"""A correlation of 1 would have no interval."""

_INDICES_PER_CHUNK = 1_000_000
"""8 MB of indices: a large dev set is resampled in several chunks."""


def bootstrap(statistic: Statistic, size: int, *, resamples: int = RESAMPLES) -> Scores:
    """The scores (resamples, K) of samples of ``size`` examples drawn with replacement."""
    assert size > 0 and resamples > 0
    generator = np.random.default_rng(0)
    rows = max(1, _INDICES_PER_CHUNK // size)
    counts = [min(rows, resamples - start) for start in range(0, resamples, rows)]
    return np.concatenate([statistic(generator.integers(size, size=(count, size))) for count in counts])


def percentile_interval(scores: Scores) -> tuple[float, float]:
    """The interval that holds the middle 95 % of the resampled scores that are defined."""
    scores = scores[~np.isnan(scores)]
    if not len(scores):
        return UNDEFINED, UNDEFINED
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def score_interval(name: str, resampled: Scores, size: int) -> tuple[float, float]:
    """The 95 % interval of the score ``name`` of ``size`` examples, from its resamples.

    Where every example is right, every resample of them is, whether there are 5 or 5,000. The lower end is then that of
    Wilson's interval (1927): 0.57 and 0.9992. Where none is right the upper end is: 0.43 and 0.0008.

    That of a correlation or of an error is undefined for fewer than ``FEWEST`` examples, whose resamples say nothing.
    """
    kind = kind_of(name)
    if size < FEWEST and kind.scale != "share":
        return UNDEFINED, UNDEFINED
    low, high = percentile_interval(resampled)
    if low == 1 and not kind.is_error:
        return _wilson(1.0, size)[0], high
    if high == 0 and kind.scale == "share":
        return low, _wilson(0.0, size)[1]
    return low, high


def _wilson(share: float, size: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``size`` examples (Wilson 1927)."""
    middle, half = share + _Z**2 / size / 2, _Z * math.sqrt(share * (1 - share) / size + (_Z / size) ** 2 / 4)
    return (middle - half) / (1 + _Z**2 / size), (middle + half) / (1 + _Z**2 / size)


def interval_by_size(name: str, score: float, size: int) -> tuple[float, float]:
    """The 95 % interval of a score by its value and the number of examples alone.

    It is Wilson's (1927) of a share, Fisher's (1921) of a correlation, and that of a mean of normal errors without
    their signs. It is undefined for a correlation or an error of fewer than ``FEWEST`` examples, and for a score that
    is none of the three.
    """
    scale = kind_of(name).scale
    is_known = 0 <= score <= 1 if scale == "share" else size >= FEWEST
    if not is_known:
        return UNDEFINED, UNDEFINED
    if scale == "error":
        half = _DEVIATION_OF_ERRORS * score * _Z / math.sqrt(size)
        return max(0.0, score - half), score + half
    if scale == "share":
        return _wilson(score, size)
    middle, half = math.atanh(max(-_NEARLY_ONE, min(_NEARLY_ONE, score))), _Z / math.sqrt(size - 3)
    return math.tanh(middle - half), math.tanh(middle + half)


def p_value(differences: Scores) -> float:
    """Two-sided p value of resampled differences: twice the share of the rarer sign; never 0 (Davison 1997).

    Undefined differences are left out; without any other p is undefined, too.
    """
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return UNDEFINED
    below = np.count_nonzero(differences <= 0)
    above = np.count_nonzero(differences >= 0)
    return float(min(1.0, 2 * (min(below, above) + 1) / (len(differences) + 1)))


def resample_means(values: NDArray[np.float64]) -> Statistic:
    """A statistic: the means over the examples of ``values`` (N, K), in which NaN is not counted."""
    is_known = ~np.isnan(values)
    known = np.where(is_known, values, 0.0)

    def score(indices: Indices) -> Scores:
        sums, counts = (
            np.stack([column[indices].sum(axis=1, dtype=np.float64) for column in each.T], axis=1)
            for each in (known, is_known)
        )
        return np.where(counts > 0, _divide(sums, counts), UNDEFINED)

    return score


def resample_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], names: Sequence[str]
) -> Statistic:
    """A statistic: ``names`` among f1, precision and recall of the entities in tagged sentences, as in ``entities``."""
    require_pairs(gold, predicted)
    pairs = [(set(find_entities(tags)), set(find_entities(found))) for tags, found in zip(gold, predicted, strict=True)]
    counts = np.array([(len(right & found), len(found), len(right)) for right, found in pairs], dtype=np.float64)

    def score(indices: Indices) -> Scores:
        correct, in_predicted, in_gold = (column[indices].sum(axis=1) for column in counts.T)
        found = {
            "f1": _divide(2 * correct, in_predicted + in_gold),
            "precision": _divide(correct, in_predicted),
            "recall": _divide(correct, in_gold),
        }
        return np.stack([found[name] for name in names], axis=1)

    return score


def resample_classes(
    gold: Sequence[str], predicted: Sequence[str], names: Sequence[str], *, positive: str = ""
) -> Statistic:
    """A statistic: ``names`` among accuracy, f1 (of ``positive``), macro_f1 and matthews, as in ``classification``."""
    require_pairs(gold, predicted)
    classes = sorted({*gold, *predicted})
    codes = {name: code for code, name in enumerate(classes)}
    gold_codes = np.array([codes[name] for name in gold])
    predicted_codes = np.array([codes[name] for name in predicted])
    correct_codes = np.where(gold_codes == predicted_codes, gold_codes, len(classes))

    def score(indices: Indices) -> Scores:
        # How often each class is the gold, the predicted and the correctly predicted one in every resample, all (R, C).
        gold_counts, predicted_counts, correct_counts = (
            _count(each[indices], len(classes)) for each in (gold_codes, predicted_codes, correct_codes)
        )
        size, right = indices.shape[1], correct_counts.sum(axis=1)
        f1 = _divide(2 * correct_counts, gold_counts + predicted_counts)
        covariance = size * right - (gold_counts * predicted_counts).sum(axis=1)
        gold_variance, predicted_variance = (
            size**2 - (counts**2).sum(axis=1) for counts in (gold_counts, predicted_counts)
        )
        found = {
            "accuracy": right / size,
            "f1": f1[:, codes[positive]] if positive in codes else np.zeros(len(indices)),
            "macro_f1": f1.sum(axis=1) / (gold_counts + predicted_counts > 0).sum(axis=1),
            "matthews": _divide(covariance, np.sqrt(gold_variance * predicted_variance)),
        }
        return np.stack([found[name] for name in names], axis=1)

    return score


def resample_numbers(gold: Sequence[float], predicted: Sequence[float], names: Sequence[str]) -> Statistic:
    """A statistic: ``names`` among pearson, spearman and mean_absolute_error, as in ``regression``."""
    require_pairs(gold, predicted)
    sides = [np.asarray(numbers, dtype=np.float64) for numbers in (gold, predicted)]
    errors = np.abs(sides[0] - sides[1])

    def score(indices: Indices) -> Scores:
        return np.stack([score_one(name, indices) for name in names], axis=1)

    def score_one(name: str, indices: Indices) -> Scores:
        if name == "mean_absolute_error":
            return np.asarray(errors[indices].mean(axis=1))
        resampled = [side[indices] for side in sides]
        if name == "spearman":
            resampled = [load("scipy.stats").rankdata(each, axis=1) for each in resampled]
        return _correlate(*resampled)

    return score


def resample_areas(gold: Sequence[float], scores: Sequence[float]) -> Statistic:
    """A statistic: ``roc_auc`` as in ``ranking``, from the ranks of the positives (Mann and Whitney 1947)."""
    require_pairs(gold, scores)
    is_positive = np.asarray(gold) == max(gold)
    values, is_graded = np.asarray(scores, dtype=np.float64), len(set(gold)) > 2
    rank = load("scipy.stats").rankdata

    def score(indices: Indices) -> Scores:
        chosen = is_positive[indices]
        positives = chosen.sum(axis=1, dtype=np.float64)
        pairs = positives * (indices.shape[1] - positives)
        in_order = (rank(values[indices], axis=1) * chosen).sum(axis=1) - positives * (positives + 1) / 2
        return np.where((pairs > 0) & (not is_graded), _divide(in_order, pairs), UNDEFINED)[:, None]

    return score


def resample_labels(
    gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]], names: Sequence[str]
) -> Statistic:
    """A statistic: ``names`` among micro_f1, macro_f1 and subset_accuracy of sets of labels, as in ``labels``."""
    require_pairs(gold, predicted)
    labels = sorted({label for each in (*gold, *predicted) for label in each})
    has_gold, has_predicted = (
        np.array([[label in each for label in labels] for each in side], dtype=np.float64) for side in (gold, predicted)
    )
    has_both, is_exact = has_gold * has_predicted, (has_gold == has_predicted).all(axis=1)

    def score(indices: Indices) -> Scores:
        times = _count(indices, len(gold))  # how often each example is in each resample
        correct, occurring = times @ has_both, times @ (has_gold + has_predicted)
        found = {
            "micro_f1": _divide(2 * correct.sum(axis=1), occurring.sum(axis=1)),
            "macro_f1": _divide(
                _divide(2 * correct, occurring).sum(axis=1), (occurring > 0).sum(axis=1, dtype=np.float64)
            ),
            "subset_accuracy": times @ is_exact / times.sum(axis=1),
        }
        return np.stack([found[name] for name in names], axis=1)

    return score


def _correlate(first: Scores, second: Scores) -> Scores:
    """Pearson correlations of the rows, (R,); undefined where one side is constant."""
    varies = (np.ptp(first, axis=1) > 0) & (np.ptp(second, axis=1) > 0)
    first, second = (side - side.mean(axis=1, keepdims=True) for side in (first, second))
    deviation = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.where(varies, _divide((first * second).sum(axis=1), deviation), UNDEFINED)


def _count(codes: NDArray[np.int64], classes: int) -> Scores:
    """(R, classes): how often each code occurs in each row of ``codes``; the code ``classes`` is not counted."""
    rows = len(codes)
    shifted = codes + np.arange(rows)[:, None] * (classes + 1)
    counts = np.bincount(shifted.ravel(), minlength=rows * (classes + 1)).reshape(rows, classes + 1)
    return counts[:, :classes].astype(np.float64)


def _divide(numerator: Scores, denominator: Scores) -> Scores:
    """0.0 where a score is undefined."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
