"""Percentile bootstrap: every resample has the scores of its examples, intervals cover the true value."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from bertkit.errors import BertkitError
from bertkit.metrics import classification, ranking, regression
from bertkit.metrics.bootstrap import (
    Indices,
    Scores,
    bootstrap,
    interval_by_size,
    p_value,
    percentile_interval,
    resample_areas,
    resample_classes,
    resample_entities,
    resample_labels,
    resample_means,
    resample_numbers,
    score_interval,
)
from bertkit.metrics.entities import score_entities
from bertkit.metrics.labels import macro_f1, micro_f1, subset_accuracy

CLASS_SCORES = ["accuracy", "f1", "macro_f1", "matthews"]


def sample_classes(size: int = 37) -> tuple[list[str], list[str]]:
    generator = random.Random(13)
    gold = generator.choices("abc", k=size)
    return gold, [label if generator.random() < 0.6 else generator.choice("abcd") for label in gold]


def sampled_indices(indices: Indices) -> Scores:
    """A statistic whose scores are the indices of the resample."""
    return indices.astype(np.float64)


def test_class_scores_of_a_resample_are_those_of_its_examples() -> None:
    gold, answers = sample_classes()
    drawn = bootstrap(resample_classes(gold, answers, CLASS_SCORES, positive="b"), 37, resamples=99)
    for row, places in zip(drawn, bootstrap(sampled_indices, 37, resamples=99).astype(int), strict=True):
        right, given = [gold[place] for place in places], [answers[place] for place in places]
        assert row == pytest.approx(
            [
                classification.accuracy(right, given),
                classification.binary_f1(right, given, positive="b"),
                classification.macro_f1(right, given),
                classification.matthews(right, given),
            ]
        )


def test_scores_of_numbers_of_a_resample_are_those_of_its_examples() -> None:
    generator = random.Random(13)
    gold = [generator.choice([0.0, 1.5, 2.0, 5.0]) for _ in range(13)]
    answers = [round(value + generator.gauss(0, 1), 1) for value in gold]
    scores = (regression.pearson, regression.spearman, regression.mean_absolute_error)
    statistic = resample_numbers(gold, answers, [score.__name__ for score in scores])
    drawn = bootstrap(statistic, 13, resamples=99)
    for row, places in zip(drawn, bootstrap(sampled_indices, 13, resamples=99).astype(int), strict=True):
        right, given = [gold[place] for place in places], [answers[place] for place in places]
        expected = [score(right, given) for score in scores]
        assert row == pytest.approx(expected, nan_ok=True)


def test_areas_of_a_resample_are_those_of_its_examples() -> None:
    generator = random.Random(13)
    gold = [generator.choice([0.0, 0.0, 1.0]) for _ in range(7)]
    answers = [round(value + generator.gauss(0, 1), 1) for value in gold]
    drawn = bootstrap(resample_areas(gold, answers), 7, resamples=99)
    expected = [
        ranking.roc_auc([gold[place] for place in places], [answers[place] for place in places])
        for places in bootstrap(sampled_indices, 7, resamples=99).astype(int)
    ]
    assert any(np.isnan(expected)), "some resample has no positive"
    assert drawn[:, 0].tolist() == pytest.approx(expected, nan_ok=True)
    assert np.isnan(resample_areas([0.0, 2.5, 5.0], [0.1, 0.2, 0.3])(np.array([[0, 2, 2]]))).all()


def test_entity_scores_of_a_resample_are_those_of_its_sentences() -> None:
    generator = random.Random(13)
    tags = ("O", "B-PER", "I-PER", "B-LOC")
    gold, answers = ([[generator.choice(tags) for _ in range(5)] for _ in range(11)] for _ in range(2))
    drawn = bootstrap(resample_entities(gold, answers, ["f1", "precision", "recall"]), 11, resamples=99)
    for row, places in zip(drawn, bootstrap(sampled_indices, 11, resamples=99).astype(int), strict=True):
        overall, _ = score_entities([gold[place] for place in places], [answers[place] for place in places])
        assert row == pytest.approx([overall.f1, overall.precision, overall.recall])
    nothing = resample_entities([["O"]], [["O"]], ["f1", "precision", "recall"])(np.array([[0]]))
    assert nothing.tolist() == [[0.0, 0.0, 0.0]]


def test_means_are_those_of_the_examples_that_have_a_value() -> None:
    values = np.array([[1.0, np.nan], [2.0, 5.0], [6.0, np.nan]])
    found = resample_means(values)(np.array([[0, 1, 2], [0, 0, 2]]))
    assert found[0].tolist() == [3.0, 5.0]
    assert found[1, 0] == pytest.approx(8 / 3)
    assert np.isnan(found[1, 1])


def test_undefined_resamples_are_left_out_of_interval_and_p() -> None:
    nan = float("nan")
    assert percentile_interval(np.array([nan, 0.25, nan, 0.75])) == pytest.approx((0.2625, 0.7375))
    assert p_value(np.array([nan, 0.5, 0.5, 0.5])) == p_value(np.array([0.5, 0.5, 0.5]))
    drawn = bootstrap(resample_numbers([1.0, 2.0, 3.0], [5.0] * 3, ["pearson", "spearman"]), 3, resamples=99)
    assert np.isnan(drawn).all() and np.isnan(percentile_interval(drawn[:, 0])).all()
    assert np.isnan(p_value(drawn[:, 0]))


@pytest.mark.parametrize("size", [1, 12, 5000])
def test_a_perfect_score_has_the_interval_of_its_size(size: int) -> None:
    drawn = bootstrap(resample_classes(["a"] * size, ["a"] * size, ["accuracy"]), size)
    expected = stats.binomtest(size, size).proportion_ci(method="wilson")
    assert score_interval("accuracy", drawn[:, 0], size) == pytest.approx((expected.low, 1.0), abs=1e-6)


@pytest.mark.parametrize("size", [1, 12, 5000])
def test_a_score_of_zero_has_the_interval_of_its_size(size: int) -> None:
    drawn = bootstrap(resample_classes(["a"] * size, ["b"] * size, ["accuracy"]), size)
    expected = stats.binomtest(0, size).proportion_ci(method="wilson")
    assert score_interval("accuracy", drawn[:, 0], size) == pytest.approx((0.0, expected.high), abs=1e-6)
    for other in ("matthews", "mean_absolute_error"):
        assert score_interval(other, drawn[:, 0], max(size, 5)) == (0.0, 0.0)


@pytest.mark.parametrize("name", ["pearson", "mean_absolute_error"])
def test_four_examples_have_no_interval_of_a_correlation_or_an_error(name: str) -> None:
    drawn = np.linspace(0.1, 0.9, 99)
    assert np.isnan([score_interval(name, drawn, 4), interval_by_size(name, 0.5, 4)]).all()
    assert not np.isnan([score_interval(name, drawn, 5), interval_by_size(name, 0.5, 5)]).any()


@pytest.mark.parametrize(("right", "size"), [(15, 30), (48, 49), (0, 7)])
def test_the_interval_of_a_share_by_its_size(right: int, size: int) -> None:
    expected = stats.binomtest(right, size).proportion_ci(method="wilson")
    assert interval_by_size("accuracy", right / size, size) == pytest.approx((expected.low, expected.high), abs=1e-6)


@pytest.mark.parametrize(("score", "size"), [(0.0, 30), (0.97, 49)])
def test_the_interval_of_a_correlation_by_its_size(score: float, size: int) -> None:
    """It holds the true correlation of 95 of 100 samples."""
    draw = np.random.default_rng(13)
    pairs = draw.multivariate_normal([0, 0], [[1, score], [score, 1]], (9999, size))
    ends = np.array([interval_by_size("pearson", float(np.corrcoef(each.T)[0, 1]), size) for each in pairs])
    assert np.mean((ends[:, 0] <= score) & (score <= ends[:, 1])) == pytest.approx(0.95, abs=0.01)


def test_the_interval_of_an_error_by_its_size() -> None:
    errors = np.abs(np.random.default_rng(13).normal(0, 5, (9999, 30))).mean(axis=1)
    found = interval_by_size("mean_absolute_error", float(errors.mean()), 30)
    assert found == pytest.approx(tuple(np.quantile(errors, [0.025, 0.975])), rel=0.03)
    assert interval_by_size("mean_absolute_error", 0.0, 30) == (0.0, 0.0)


def test_other_scores_have_the_interval_of_their_resamples() -> None:
    drawn = bootstrap(resample_classes(["a"] * 9 + ["b"], ["a"] * 10, ["accuracy"]), 10)[:, 0]
    assert score_interval("accuracy", drawn, 10) == percentile_interval(drawn)


def test_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(13).random((199, 1))
    interval = percentile_interval(bootstrap(resample_means(values), 199, resamples=9_999)[:, 0])
    expected = stats.bootstrap((values[:, 0],), np.mean, n_resamples=9_999, method="percentile", rng=7)
    assert interval == pytest.approx(tuple(expected.confidence_interval), abs=0.002)


def test_interval_covers_the_true_value_at_its_level() -> None:
    generator = np.random.default_rng(13)
    covered = 0
    for _ in range(400):
        correct = (generator.random((99, 1)) < 0.8).astype(np.float64)
        low, high = percentile_interval(bootstrap(resample_means(correct), 99, resamples=400)[:, 0])
        covered += low <= 0.8 <= high
    assert 0.90 < covered / 400 < 0.98


@pytest.mark.parametrize("size", [1, 7])
def test_interval_of_constant_predictions_is_one_point(size: int) -> None:
    drawn = bootstrap(resample_classes(["a"] * size, ["a"] * size, CLASS_SCORES, positive="b"), size)
    assert [percentile_interval(column) for column in drawn.T] == [(1, 1), (0, 0), (1, 1), (0, 0)]
    drawn = bootstrap(resample_numbers([2.0] * size, [2.5] * size, ["pearson", "spearman"]), size)
    assert np.isnan(drawn).all()


def test_large_samples_are_resampled_in_chunks_from_all_examples() -> None:
    drawn = bootstrap(lambda indices: indices.max(axis=1, keepdims=True).astype(float), 400_001, resamples=7)
    assert drawn.shape == (7, 1)
    assert drawn.min() > 399_900


def test_no_examples_are_an_error() -> None:
    with pytest.raises(BertkitError, match="nothing to score"):
        resample_classes([], [], CLASS_SCORES)


def test_p_value_is_two_sided() -> None:
    differences = np.array([-1.0] * 4 + [2.0] * 95)
    assert p_value(differences) == pytest.approx(2 * 5 / 100)
    assert type(p_value(differences)) is float, "a number of NumPy is no JSON"
    assert p_value(-differences) == p_value(differences)
    assert p_value(np.zeros(99)) == 1.0
    assert p_value(np.ones(999)) == pytest.approx(2 / 1000)


def test_equal_models_rarely_differ_significantly() -> None:
    generator = np.random.default_rng(7)
    significant = 0
    for _ in range(200):
        sides = [(generator.random((67, 1)) < 0.7).astype(np.float64) for _ in range(2)]
        drawn = [bootstrap(resample_means(side), 67, resamples=300) for side in sides]
        significant += p_value((drawn[0] - drawn[1])[:, 0]) < 0.05
    assert significant / 200 < 0.1


def test_scores_of_sets_of_labels_in_a_resample_are_those_of_its_examples() -> None:
    generator = np.random.default_rng(3)
    gold, answers = ([tuple(np.array(list("abcde"))[generator.random(5) < 0.3]) for _ in range(37)] for _ in range(2))
    scores = {"subset_accuracy": subset_accuracy, "macro_f1": macro_f1, "micro_f1": micro_f1}
    resamples = generator.integers(37, size=(20, 37))
    found = resample_labels(gold, answers, list(scores))(resamples)
    for row, places in zip(found, resamples.tolist(), strict=True):
        sides = [[side[place] for place in places] for side in (gold, answers)]
        assert row == pytest.approx([score(*sides) for score in scores.values()], abs=1e-12)


def test_sets_without_any_label_score_0() -> None:
    found = resample_labels([()] * 3, [()] * 3, ["micro_f1", "macro_f1", "subset_accuracy"])(np.array([[0, 1, 1]]))
    assert found.tolist() == [[0.0, 0.0, 1.0]]
