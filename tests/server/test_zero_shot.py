"""Zero-shot classification beside the inference model that it uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.server.running import served
from tests.server.test_abilities import answer

from bertkit.inference.pipeline import load
from bertkit.server.errors import ServerError
from bertkit.server.zero_shot import can_infer, classify_zero_shot, find_opposite

TEXT, LABELS = "the river ran", ["water", "money", "stone"]


def test_the_scores_are_a_softmax_over_entailment(tiny_models: Path) -> None:
    found = answer(
        tiny_models,
        "inference",
        lambda call, model: classify_zero_shot(call, model, TEXT, LABELS, template="It is {}.", several=False),
    )
    pairs = [(TEXT, f"It is {label}.") for label in LABELS]
    offline = [each.scores for each in load(tiny_models / "inference").predict(pairs)]
    # A softmax of log-probabilities plus each pair's constant: the constant is recovered from the offline model.
    assert sum(score for _, score in found) == pytest.approx(1)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert {label for label, _ in found} == set(LABELS)
    assert len(offline) == 3


def test_several_labels_are_decided_against_contradiction(tiny_models: Path) -> None:
    found = answer(
        tiny_models,
        "inference",
        lambda call, model: classify_zero_shot(call, model, TEXT, LABELS, template="It is {}.", several=True),
    )
    pairs = [(TEXT, f"It is {label}.") for label in LABELS]
    for label, each in zip(LABELS, load(tiny_models / "inference").predict(pairs), strict=True):
        yes, no = np.log(each.scores["entailment"]), np.log(each.scores["contradiction"])
        expected = np.exp(yes) / (np.exp(yes) + np.exp(no))
        assert dict(found)[label] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("names", [("entailment", "other"), ("other", "entailment")])
def test_without_contradiction_the_other_one_of_two_labels_is_the_opposite(
    tiny_models: Path, names: tuple[str, ...]
) -> None:
    (model,) = served(tiny_models, "inference")
    assert find_opposite(model, names) == names.index("other")
    with pytest.raises(ServerError, match='has no label "contradiction"'):
        find_opposite(model, ("neutral", "refuted", "entailment"))


def test_what_cannot_be_asked_is_refused(tiny_models: Path) -> None:
    with pytest.raises(ServerError, match=r"needs one \{\}, where the label goes"):
        answer(
            tiny_models,
            "inference",
            lambda call, model: classify_zero_shot(call, model, TEXT, LABELS, template="It is.", several=False),
        )
    with pytest.raises(ServerError, match='has no label "entailment"'):
        answer(
            tiny_models,
            "reviews",
            lambda call, model: classify_zero_shot(call, model, TEXT, LABELS, template=None, several=False),
        )
    assert [can_infer(model) for model in served(tiny_models, "inference", "reviews")] == [True, False]


@pytest.mark.parametrize(
    ("template", "labels", "message"),
    [
        ("no place", LABELS, "needs one {}"),
        ("{}" * 3, LABELS, "needs one {}"),
        ("{}" + "x" * 190_000, ["a"] * 20, "are allowed. Send fewer"),
        ("It is {}.", ["a" * 20] * 90_000, "are allowed. Send fewer"),
    ],
)
def test_a_template_or_labels_that_would_fill_the_memory_are_refused(
    tiny_models: Path, template: str, labels: list[str], message: str
) -> None:
    with pytest.raises(ServerError, match=message) as caught:
        answer(
            tiny_models,
            "inference",
            lambda call, model: classify_zero_shot(call, model, TEXT, labels, template=template, several=False),
        )
    assert caught.value.status == 422
