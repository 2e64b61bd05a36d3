from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bertkit
from bertkit.config.records import from_plain, to_plain
from bertkit.finetuning.baselines import Baseline, describe_baselines, fit_baselines, format_metric, verdict
from bertkit.scores import UNDEFINED
from bertkit.task_types import RegressionTask, TextClassificationTask, TextExample

MAJORITY = Baseline(name="most frequent answer", scores={"accuracy": 0.5}, seconds=0.0, interval=(0.46, 0.54))
WORDS = Baseline(name="bag of words", scores={"accuracy": 0.75}, seconds=1.0, interval=(0.72, 0.78))
BASELINES = [MAJORITY, WORDS]


@pytest.mark.usefixtures("no_pictures")
def test_a_fine_tuning_is_compared_with_baselines(
    model: Path, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = bertkit.finetune(table, model=model, output=tmp_path / "run", epochs=1, progress="plain")
    assert [each.name for each in result.baselines] == ["most frequent answer", "bag of words"]
    for each in result.baselines:
        assert each.interval is not None
        assert 0 <= each.interval[0] <= each.scores["accuracy"] <= each.interval[1] <= 1
    assert "to beat: most frequent answer" in capsys.readouterr().err
    record = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [each["name"] for each in record["baselines"]] == ["most frequent answer", "bag of words"]
    assert result.verdict().startswith("accuracy: ")


@pytest.mark.usefixtures("no_pictures")
def test_baselines_can_be_left_out(model: Path, table: Path, tmp_path: Path) -> None:
    result = bertkit.finetune(table, model=model, output=tmp_path / "run", epochs=1, no_baseline=True, progress="quiet")
    assert (result.baselines, result.verdict()) == ([], "")


def examples(*rows: tuple[str, str]) -> list[TextExample]:
    return [TextExample(str(number), text, None, label) for number, (text, label) in enumerate(rows)]


def test_further_dev_sets_have_scores_of_their_own() -> None:
    task = TextClassificationTask(name="mood", metric="accuracy", labels=("sad", "glad"))
    train = examples(*[("cold rain", "sad"), ("warm sun", "glad")] * 3, ("warm snow", "glad"))
    dev = examples(("cold", "sad"), ("warm", "glad"), ("sun", "glad"), ("rain", "sad"))
    other = examples(("cold", "glad"), ("warm", "glad"), ("rain", "glad"), ("rain", "sad"))
    _, words = fit_baselines(task, train, dev, {"dev_other": other})
    assert words.scores == {"accuracy": 1.0, "accuracy_other": 0.5}


def test_a_score_that_is_no_share_is_not_in_per_cent() -> None:
    found = verdict("negative_mae", 0.25, [Baseline(name="mean", scores={"negative_mae": -1.225}, seconds=1.0)])
    assert found == "negative_mae: the mean has -1.2250, this model 0.2500: the model is better by 1.4750"


def test_the_verdict_names_the_best_baseline() -> None:
    better = verdict("accuracy", 0.8, BASELINES)
    assert better == "accuracy: a bag of words has 75.0 %, this model 80.0 %: the model is better by 5.0 points"
    worse = verdict("accuracy", 0.522, BASELINES)
    assert "a bag of words has 75.0 %, this model 52.2 %: the model is worse by 22.8 points" in worse
    assert "What helps: a model that is larger" in worse
    assert "the most frequent answer has 50.0 %, this model 40.0 %" in verdict("accuracy", 0.4, [MAJORITY])


@pytest.mark.parametrize("score", [0.71, 0.74, 0.75, 0.79])
def test_two_scores_that_differ_by_chance_are_no_difference(score: float) -> None:
    """Each has an interval of 3 points up and down, their difference one of 4.2."""
    found = verdict("accuracy", score, BASELINES)
    assert ": no clear difference; on this many examples two equally good systems may differ by 4.2 points" in found
    assert "better" not in found and "worse" not in found
    assert "better" in verdict("accuracy", 0.793, BASELINES)
    assert "worse" in verdict("accuracy", 0.707, BASELINES)


def test_the_margin_is_that_of_the_side_on_which_the_model_is() -> None:
    """The interval is 2 points up and 5 down, a difference 2.8 and 7.1."""
    uneven = [replace(WORDS, interval=(0.70, 0.77))]
    assert "better by 4.0 points" in verdict("accuracy", 0.79, uneven)
    assert "may differ by 2.8 points" in verdict("accuracy", 0.77, uneven)
    assert "may differ by 7.1 points" in verdict("accuracy", 0.71, uneven)
    assert "worse by 8.0 points" in verdict("accuracy", 0.67, uneven)


def test_of_two_equally_good_systems_few_are_called_better_or_worse() -> None:
    """Their hits are independent here, so that their difference varies most."""
    rng = np.random.default_rng(0)
    half, judged = 1.96 * math.sqrt(0.75 * 0.25 / 800), 0
    for one, other in (rng.binomial(800, 0.75, size=(2000, 2)) / 800).tolist():
        words = replace(WORDS, scores={"accuracy": other}, interval=(other - half, other + half))
        found = verdict("accuracy", one, [words])
        judged += "better" in found or "worse" in found
    assert 0.03 < judged / 2000 < 0.07


def test_two_perfect_scores_need_no_advice() -> None:
    perfect = [Baseline(name="bag of words", scores={"accuracy": 1.0}, seconds=1.0, interval=(1.0, 1.0))]
    found = verdict("accuracy", 1.0, perfect)
    assert found.endswith("this model 100.0 %: both have nothing left to gain on these examples")


def test_a_perfect_score_gets_no_advice_to_train_more() -> None:
    wide = [Baseline(name="bag of words", scores={"accuracy": 0.9}, seconds=1.0, interval=(0.7, 1.0))]
    assert verdict("accuracy", 1.0, wide).endswith("; more dev examples would show which is better")


def test_a_record_without_an_interval_is_compared_by_its_score() -> None:
    old = [Baseline(name="bag of words", scores={"accuracy": 0.75}, seconds=1.0)]
    assert "better by 1.0 points" in verdict("accuracy", 0.76, old)
    assert "worse by 1.0 points" in verdict("accuracy", 0.74, old)


@pytest.mark.parametrize(("score", "to_beat"), [(UNDEFINED, 0.5), (0.5, UNDEFINED)])
def test_an_undefined_correlation_is_not_compared(score: float, to_beat: float) -> None:
    found = verdict("pearson", score, [Baseline(name="bag of words", scores={"pearson": to_beat}, seconds=1.0)])
    assert "undefined" in found and "better" not in found and "worse" not in found


def test_correlations_are_not_shown_as_shares() -> None:
    assert (format_metric("spearman", 0.569), format_metric("f1", 0.569)) == ("0.5690", "56.9 %")


def test_of_an_error_less_is_better() -> None:
    mean = Baseline(name="mean", scores={"mean_absolute_error": 4.0}, seconds=0.0, interval=(3.0, 5.5))
    words = Baseline(name="bag of words", scores={"mean_absolute_error": 2.0}, seconds=1.0, interval=(1.5, 2.5))
    better = verdict("mean_absolute_error", 1.0, [mean, words])
    assert better == "mean_absolute_error: a bag of words has 2.0000, this model 1.0000: the model is better by 1.0000"
    assert ": no clear difference; " in verdict("mean_absolute_error", 1.5, [mean, words])
    assert ": the model is worse by 1.0000 and " in verdict("mean_absolute_error", 3.0, [mean, words])


def test_numbers_are_compared_with_their_mean_and_a_bag_of_words() -> None:
    task = RegressionTask(name="stars", metric="pearson", also=("mean_absolute_error",))
    train = [
        TextExample(str(n), text, None, stars) for n, (text, stars) in enumerate([("bad", 1.0), ("good", 4.0)] * 3)
    ]
    dev = [TextExample("7", "bad", None, 1.5), TextExample("8", "good", None, 4.0)]
    mean, words = fit_baselines(task, train, dev)
    assert mean.scores["mean_absolute_error"] == 1.25 and math.isnan(mean.scores["pearson"])
    assert mean.interval is not None and math.isnan(mean.interval[0])
    read = from_plain(Baseline, json.loads(json.dumps(to_plain(mean))), source="here")
    assert read.interval is not None and math.isnan(read.interval[1]) and math.isnan(read.scores["pearson"])
    assert words.scores["mean_absolute_error"] < 1
    better = verdict("mean_absolute_error", 0.0, fit_baselines(replace(task, metric="mean_absolute_error"), train, dev))
    assert better.endswith("this model 0.0000: there are too few examples to tell which is better")
    assert describe_baselines("pearson", [mean, words], 6) == "to beat: bag of words 1.0000"
    assert list(replace(task, also=()).baselines()) == ["bag of words"]


def test_the_scores_to_beat_are_one_sentence() -> None:
    expected = "to beat: most frequent answer 50.0 %, bag of words 75.0 %"
    assert describe_baselines("accuracy", BASELINES, 100) == expected
    limited = [replace(each, num_examples=20_000) for each in BASELINES]
    assert describe_baselines("accuracy", limited, 20_000) == expected
    shown = describe_baselines("accuracy", limited, 30_000)
    assert shown == f"{expected} (fitted on 20,000 of 30,000 training examples, drawn at random)"
