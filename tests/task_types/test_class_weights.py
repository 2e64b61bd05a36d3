"""Weights of classes by name, and texts longer than the model reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

from bertkit.batch import Batch
from bertkit.config import apply, parse_settings
from bertkit.contracts import Tokenizer
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.task_types import RegressionTask, TextClassificationTask, TextExample
from bertkit.task_types.user_tables import guess

REVIEWS = TextClassificationTask(name="reviews", metric="accuracy", labels=("bad", "good", "odd"), max_length=13)
PAIRS = TextClassificationTask(name="pairs", metric="accuracy", labels=("yes", "no"), pair=True, max_length=13)


def words(count: int, name: str = "word") -> str:
    return " ".join(f"{name}{place}" for place in range(count))


def test_weights_are_set_by_name() -> None:
    task = apply(REVIEWS, parse_settings(["class_weights.good=2", "class_weights.odd=0.5"]))
    assert task.class_weights == {"good": 2.0, "odd": 0.5}
    assert REVIEWS.weighted("good=2, odd=0.5") == task
    head = task.objectives(Bert(BertConfig(vocab_size=9, hidden_size=2, num_layers=1, num_heads=1)))["class"]
    assert isinstance(head, SequenceClassification)
    assert head.weights is not None
    assert head.weights.tolist() == [1.0, 2.0, 0.5]
    assert "weights" not in head.state_dict()


def test_balanced_weights_are_those_of_scikit_learn(tmp_path: Path) -> None:
    labels = ["bad"] * 20 + ["good"] * 7 + ["odd"] * 3
    table = "\n".join(["text,label", *(f"film {row},{label}" for row, label in enumerate(labels))])
    (tmp_path / "t.csv").write_text(table)
    found = guess(tmp_path / "t.csv", dev=tmp_path / "t.csv").task
    assert isinstance(found, TextClassificationTask)
    task = found.weighted("balanced")
    expected = compute_class_weight("balanced", classes=np.array(task.labels), y=labels)
    assert list(task.class_weights.values()) == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("god=2", r'no class "god" to weigh. reviews knows: bad, good, odd. Did you mean "good"\?'),
        ("good=0", 'the class "good" weighs 0; a weight is a number above 0'),
        ("good=-1", 'the class "good" weighs -1'),
        ("good=inf", 'the class "good" weighs inf'),
        ("good=nan", 'the class "good" weighs nan'),
        ("good", 'class weights "good": expected "balanced" or NAME=NUMBER,NAME=NUMBER'),
        ("good=much", 'class weights "good=much": expected "balanced"'),
    ],
)
def test_wrong_weights_are_refused(weights: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        REVIEWS.weighted(weights)
    assert caught.value.exit_code == WRONG_USAGE


def test_a_number_has_no_classes_to_weigh() -> None:
    with pytest.raises(BertkitError, match="stars has no classes of texts to weigh"):
        RegressionTask(name="stars", metric="pearson").weighted("balanced")


def test_weighted_loss_is_that_of_torch() -> None:
    head = SequenceClassification(5, 3, weights=[1.0, 2.0, 0.5])
    logits, labels = torch.randn(7, 3), torch.tensor([0, 1, 2, 1, 1, -100, 0])
    expected = torch.nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 0.5]), reduction="none")(logits, labels).sum()
    batch = Batch(torch.zeros(7, 2).long(), torch.zeros(7, 2).long(), torch.ones(7, 2).bool(), {"class": labels})
    term = head.loss({"logits": logits}, batch)["class"]
    torch.testing.assert_close(term.sum, expected)
    assert term.count == 6


def test_what_is_cut_is_counted(tokenizer: Tokenizer) -> None:
    (feature,) = REVIEWS.encode(TextExample("1", words(30)), tokenizer)
    assert (len(feature), feature.num_truncated) == (13, 30 - 11)
    (pair,) = PAIRS.encode(TextExample("1", words(30), words(4)), tokenizer)
    assert (len(pair), pair.num_truncated) == (13, 34 - 10)
    (fits,) = REVIEWS.encode(TextExample("1", words(11)), tokenizer)
    assert fits.num_truncated == 0


@pytest.mark.parametrize("count", [1, 11, 12, 13, 30, 99])
@pytest.mark.parametrize("stride", [1, 7, 11])
def test_windows_hold_every_token(count: int, stride: int, tokenizer: Tokenizer) -> None:
    task = apply(REVIEWS, parse_settings([f"stride={stride}"]))
    features = task.encode(TextExample("1", words(count), None, "odd"), tokenizer)
    places = [np.asarray(feature.offsets)[1:-1] for feature in features]
    seen = {tuple(place) for each in places for place in each}
    assert seen == set(tokenizer.encode(words(count)).offsets)
    assert all(
        len(feature) <= 13 and feature.labels["class"] == 2 and not feature.num_truncated for feature in features
    )
    assert len(features) == (1 if count <= 11 else -(-(count - 11) // stride) + 1)


@pytest.mark.parametrize(("first", "second", "cut"), [(30, 3, 0), (3, 30, 0), (30, 20, 15), (7, 8, 2), (5, 5, 0)])
def test_windows_of_a_pair_run_over_the_longer_text(first: int, second: int, cut: int, tokenizer: Tokenizer) -> None:
    task = apply(PAIRS, parse_settings(["stride=5"]))
    texts = (words(first, "one"), words(second, "two"))
    features = task.encode(TextExample("1", *texts), tokenizer)
    assert sum(feature.num_truncated for feature in features) == cut
    longer = int(second > first)
    seen = set()
    for feature in features:
        assert len(feature) <= 13
        assert feature.offsets is not None
        inside = (feature.segment_ids == longer) & (feature.offsets[:, 1] > 0)
        seen |= {tuple(place) for place in feature.offsets[inside]}
    assert seen == set(tokenizer.encode(texts[longer]).offsets)


def test_windows_answer_with_their_mean(tokenizer: Tokenizer) -> None:
    logits = [np.array([4.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.0, 5.0, 0.0])]
    prediction = REVIEWS.decode(TextExample("1", ""), [], [{"logits": each} for each in logits])
    assert prediction.label == "good"
    expected = torch.softmax(torch.tensor([4 / 3, 2.0, 0.0]), 0).tolist()
    assert list(prediction.scores.values()) == pytest.approx(expected)
    stars = RegressionTask(name="stars", metric="pearson")
    assert stars.decode(TextExample("1", ""), [], [{"value": np.array(x)} for x in (1.0, 4.0)]).label == 2.5


@pytest.mark.parametrize(("task", "stride", "most"), [(REVIEWS, 12, 11), (PAIRS, 6, 5), (REVIEWS, -1, 11)])
def test_a_stride_that_would_skip_tokens_is_refused(task: TextClassificationTask, stride: int, most: int) -> None:
    with pytest.raises(BertkitError, match=rf"13 tokens holds {most} of the text: .* Choose a stride up to that"):
        apply(task, parse_settings([f"stride={stride}"]))


@pytest.mark.parametrize("task", [REVIEWS, PAIRS])
def test_the_advice_can_be_taken(task: TextClassificationTask) -> None:
    setting = task.advise_on_cuts().removeprefix("Read them whole: --set task.")
    assert apply(task, parse_settings([setting])).stride > 0


def test_predictions_of_texts_that_were_cut_say_so(tokenizer: Tokenizer) -> None:
    example = TextExample("1", words(30))
    prediction = REVIEWS.decode(example, REVIEWS.encode(example, tokenizer), [{"logits": np.zeros(3)}])
    assert REVIEWS.describe(example, prediction)["num_truncated"] == 19
    whole = TextExample("2", words(3))
    prediction = REVIEWS.decode(whole, REVIEWS.encode(whole, tokenizer), [{"logits": np.zeros(3)}])
    assert "num_truncated" not in REVIEWS.describe(whole, prediction)
