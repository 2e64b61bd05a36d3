from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import pytest

from bertkit.task_types import (
    MultiLabelTask,
    Prediction,
    TagExample,
    TaggingTask,
    TagPrediction,
    TextClassificationTask,
    TextExample,
    resampling,
)
from bertkit.task_types.resampling import resample


class SlowTask(TextClassificationTask):
    """A task with a score that is neither known to be vectorised nor a mean over the examples."""

    def resampling_statistic(self, *arguments: object) -> None:
        return None

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        correct = [prediction.label == each.label for each, prediction in zip(examples, predictions, strict=True)]
        return {"accuracy": sum(correct) / len(correct), "any": float(any(correct[:2]))}


class MeanTask(SlowTask):
    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        return {"accuracy": super().score(examples, predictions)["accuracy"]}


class SparseTask(SlowTask):
    """A task with a score that only some examples have."""

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        known = list(examples)
        found = {"accuracy": super().score(known, predictions)["accuracy"]}
        return found | ({"first": 1.0} if any(each.id == "0" for each in known) else {})


GOLD = ["sad", "glad", "glad", "sad", "glad", "glad", "sad"]
PREDICTED = ["sad", "sad", "glad", "sad", "glad", "sad", "sad"]
EXAMPLES = [TextExample(str(place), "a text", None, label) for place, label in enumerate(GOLD)]
PREDICTIONS = [Prediction(label) for label in PREDICTED]


def task_of(kind: type[TextClassificationTask]) -> TextClassificationTask:
    return kind(name="moods", metric="accuracy", labels=("sad", "glad"))


@pytest.mark.parametrize("kind", [TextClassificationTask, MeanTask, SlowTask])
def test_every_way_of_scoring_uses_the_same_resamples(kind: type[TextClassificationTask]) -> None:
    found = resample(task_of(kind), EXAMPLES, PREDICTIONS)
    expected = resample(task_of(TextClassificationTask), EXAMPLES, PREDICTIONS)
    assert found.scores["accuracy"] == 5 / 7
    assert found.resampled.shape == (1000, len(found.scores))
    np.testing.assert_allclose(found.resampled[:, 0], expected.resampled[:, 0], rtol=0, atol=1e-12)


class OtherTagger(TaggingTask):
    """A user's tagger, whose F1 is another one, or which has one more score."""

    def score(self, examples: Iterable[TagExample], predictions: Iterable[TagPrediction]) -> dict[str, float]:
        return {**super().score(examples, predictions), **self.other}

    other: ClassVar[dict[str, float]]


@pytest.mark.parametrize("other", [{"f1": 0.25}, {"words": 0.75}])
def test_a_user_s_definition_of_a_score_is_resampled_as_it_is(
    other: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OtherTagger, "other", other, raising=False)
    task = OtherTagger(name="t", labels=("O", "B-X"))
    examples = [TagExample(str(n), ("a", "b"), ("O", "B-X")) for n in range(3)]
    predictions = [TagPrediction(("O", "B-X"), (1.0, 1.0), ())] * 3
    found = resample(task, examples, predictions)
    (name,) = other
    assert found.resampled[:, list(found.scores).index(name)].tolist() == [other[name]] * len(found.resampled)


class OtherLabels(MultiLabelTask):
    """A user's task of several labels with one more score."""

    score_names = (*MultiLabelTask.score_names, "mine")

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        return {**super().score(examples, predictions), "mine": 0.25}


def test_one_more_score_of_several_labels_is_resampled() -> None:
    task = OtherLabels(name="t", labels=("x", "y"))
    examples = [TextExample(str(n), "a", None, ("x",)) for n in range(3)]
    found = resample(task, examples, [Prediction(("x",))] * 3)
    assert set(found.resampled[:, list(found.scores).index("mine")]) == {0.25}


def test_resamples_without_a_score_do_not_count_as_zero() -> None:
    found = resample(task_of(SparseTask), EXAMPLES, PREDICTIONS)
    values = found.resampled[:, list(found.scores).index("first")]
    assert set(values[~np.isnan(values)]) == {1.0}
    assert np.isnan(values).any()


def test_slow_scores_have_fewer_resamples_of_large_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_MAX_SCORED_EXAMPLES", 7 * 500)
    assert len(resample(task_of(SlowTask), EXAMPLES, PREDICTIONS).resampled) == 500
    monkeypatch.setattr(resampling, "_MAX_SCORED_EXAMPLES", 7)
    assert len(resample(task_of(SlowTask), EXAMPLES, PREDICTIONS).resampled) == 100
    assert len(resample(task_of(TextClassificationTask), EXAMPLES, PREDICTIONS).resampled) == 1000
