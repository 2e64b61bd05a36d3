"""Classification of texts: weights of classes, scores and predictions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.batch import Batch
from bertkit.config.settings import apply, parse_settings, refuse_without_effect
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.task_types import TextClassificationTask

REVIEWS = TextClassificationTask(name="reviews", metric="accuracy", labels=("bad", "good", "odd"), max_length=13)


def test_weights_are_set_by_name() -> None:
    task = apply(REVIEWS, parse_settings(["class_weights.good=2", "class_weights.odd=0.5"]))
    assert task.class_weights == {"good": 2.0, "odd": 0.5}
    message = "class_weights is balanced; expected an object in braces, each value a number above 0 and at most 1,000"
    with pytest.raises(BertkitError, match=message):
        apply(REVIEWS, parse_settings(["class_weights=balanced"]))
    assert REVIEWS.weighted("good=2, odd=0.5") == task
    head = task.objectives(Bert(BertConfig(vocab_size=9, hidden_size=2, num_layers=1, num_heads=1)))["class"]
    assert isinstance(head, SequenceClassification)
    assert head.weights is not None
    assert head.weights.tolist() == [1.0, 2.0, 0.5]
    assert "weights" not in head.state_dict()


def test_weighted_loss_is_that_of_torch() -> None:
    head = SequenceClassification(5, 3, weights=[1.0, 2.0, 0.5])
    logits, labels = torch.randn(7, 3), torch.tensor([0, 1, 2, 1, 1, -100, 0])
    expected = torch.nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 0.5]), reduction="none")(logits, labels).sum()
    batch = Batch(torch.zeros(7, 2).long(), torch.zeros(7, 2).long(), torch.ones(7, 2).bool(), {"class": labels})
    term = head.loss({"logits": logits}, batch)["class"]
    torch.testing.assert_close(term.sum, expected)
    assert term.count == 6


def test_f1_is_a_score_of_two_classes_or_of_the_positive_one() -> None:
    assert replace(REVIEWS, labels=("bad", "good"), metric="f1").metric == "f1"
    gold, answers = ["bad", "bad", "good", "good"], ["bad", "good", "good", "good"]
    f1 = {name: replace(REVIEWS, positive=name, metric="f1").score_answers("f1", gold, answers) for name in gold}
    assert f1 == {"bad": pytest.approx(2 / 3), "good": pytest.approx(4 / 5)}
    with pytest.raises(BertkitError, match=r'positive is god, and reviews has bad, good, odd\. Did you mean "good"\?'):
        replace(REVIEWS, positive="god", metric="f1")
    with pytest.raises(BertkitError, match=r"positive has no effect without task\.metric=f1"):
        refuse_without_effect(replace(REVIEWS, positive="bad"), parse_settings(["positive=bad"]))
    with pytest.raises(
        BertkitError, match=r"f1 is a score of one class, and reviews has 3: name it with task\.positive"
    ):
        replace(REVIEWS, metric="f1")
