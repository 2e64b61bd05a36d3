from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from bertkit.task_types.baselines import (
    _fit_logistic_regression,
    most_frequent,
    predict_classes,
    predict_labels,
    predict_numbers,
    sample_training,
)
from bertkit.task_types.text_reader import TextExample, TextLabel

GOOD, BAD = "a fine and moving film", "a dull and tedious bore"


def examples(*rows: tuple[str, TextLabel], second: str | None = None) -> list[TextExample]:
    return [TextExample(str(number), text, second, label) for number, (text, label) in enumerate(rows)]


def test_classes_are_learned_from_words() -> None:
    train = examples((GOOD, "yes"), (BAD, "no"), ("fine, moving", "yes"), ("dull, a bore", "no"))
    assert predict_classes(train, examples(("moving film", "no"), ("tedious and dull", "yes"))) == ["yes", "no"]


def test_misspelled_words_share_their_characters() -> None:
    train = examples(*[("wonderful", "yes"), ("terrible", "no")] * 3)
    assert predict_classes(train, examples(("wonderfull", "no"), ("terribly", "yes"))) == ["yes", "no"]


def test_case_is_kept_where_it_is_inside_of_words() -> None:
    """As in SMILES: small letters are rings of another kind."""
    train = examples(*[("CCc1ccccc1O", "aromatic"), ("CCC1CCCCC1O", "not")] * 9)
    assert predict_classes(train, examples(("c1ccccc1CO", ""), ("C1CCCCC1CO", ""))) == ["aromatic", "not"]


def test_classes_have_the_weights_of_the_model() -> None:
    train = examples(*[("ok run", "normal")] * 60, ("ok stop", "odd"))
    dev = examples(("ok stop", "odd"))
    assert predict_classes(train, dev) == ["normal"]
    assert predict_classes(train, dev, {"odd": 60.0, "of no row": 2.0}) == ["odd"]


def test_classes_may_have_numbers_as_names() -> None:
    train = examples(*[(GOOD, "1"), (BAD, "0")] * 9)
    assert predict_classes(train, train[:2]) == predict_classes(train, train[:2], {"1": 2.0}) == ["1", "0"]


def test_nearly_as_many_classes_as_rows_are_no_reason_for_a_warning() -> None:
    train = examples(*[(f"film {row}", f"class {min(row, 25)}") for row in range(30)])  # warnings are errors in tests
    assert predict_classes(train, examples(("film 7", "class 7"))) == ["class 7"]


def test_many_classes_are_learned_from_frequent_features(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []

    def fit(features: Any, answers: Sequence[str], weights: None) -> Any:
        fitted.append(features.shape[1])
        return _fit_logistic_regression(features, answers, weights)

    monkeypatch.setattr("bertkit.task_types.baselines._fit_logistic_regression", fit)
    train = examples(*[(f"the {word} mill {row}", word) for row in range(20) for word in ("old", "new", "red")])
    dev = examples(("an old wheel", "old"), ("the red one", "red"))
    assert predict_classes(train, dev) == ["old", "red"]
    monkeypatch.setattr("bertkit.task_types.baselines._MOST_WEIGHTS", 3 * 50)
    assert predict_classes(train, dev) == ["old", "red"]
    assert fitted[0] > fitted[1] == 50


def test_small_gradients_of_many_classes_are_followed() -> None:
    """They are 7.5e-5 at the start, and scikit-learn's tolerance is 1e-4."""
    answers = [f"class {number}" for number in range(40)]
    features = csr_matrix(0.003 * np.eye(40))
    assert list(_fit_logistic_regression(features, answers).predict(features)) == answers


def test_one_class_needs_no_model() -> None:
    assert predict_classes(examples((GOOD, "yes"), (BAD, "yes")), examples((BAD, "no"))) == ["yes"]


def test_empty_texts_are_classified() -> None:
    train = examples((GOOD, "yes"), ("", "no"), (BAD, "no"))
    assert len(predict_classes(train, examples(("", "no"), ("?", "yes")))) == 2


def test_numbers_follow_the_words() -> None:
    train = examples(*[("cold snow", 1.0), ("mild rain", 5.0), ("hot sun", 9.0)] * 4)
    low, middle, high = predict_numbers(train, examples(("snow", 0.0), ("rain", 0.0), ("sun", 0.0)))
    assert low < middle < high


def test_numbers_of_pairs_see_what_the_texts_share() -> None:
    words = ["river", "stone", "garden", "music", "letter", "winter", "market", "silver"]
    rows = [(one, other) for one in words for other in words]
    train = [TextExample("", one, other, 5.0 if one == other else 0.0) for one, other in rows]
    dev = [TextExample("", "bridge", other, 0.0) for other in ("bridge", "window")]
    same, different = predict_numbers(train, dev)
    assert same > different + 1


def test_every_label_has_a_model_of_its_own() -> None:
    train = examples(*[("red sky", ("red",)), ("blue sky", ("blue",)), ("red and blue", ("blue", "red"))] * 4)
    dev = examples(("red", ()), ("blue", ()), ("blue red", ()))
    assert predict_labels(train, dev, ("blue", "red")) == [("red",), ("blue",), ("blue", "red")]


def test_a_rare_label_has_a_threshold_of_its_own() -> None:
    """One text in four with the word has the label: a threshold of one half would never give it."""
    rows = [("red sky", ("rare",) if number % 4 == 0 else ()) for number in range(200)]
    train = examples(*rows, *[("blue sea", ())] * 200)
    assert predict_labels(train, examples(("red sky", ()), ("blue sea", ())), ("rare",)) == [("rare",), ()]


def test_a_label_that_never_or_always_applies() -> None:
    train = examples(("red", ("always",)), ("blue", ("always",)))
    assert predict_labels(train, examples(("red", ())), ("always", "never")) == [("always",)]


@pytest.mark.parametrize(("answers", "expected"), [(["a", "b", "b"], "b"), (["c", "a"], "c")])
def test_the_most_frequent_answer(answers: list[str], expected: str) -> None:
    assert most_frequent(answers) == expected


def test_a_large_train_is_sampled_from_all_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    train = examples(*[("early river", "first")] * 50, *[("late river", "last")] * 50)
    assert sample_training(train) == train
    monkeypatch.setattr("bertkit.task_types.baselines._MOST_EXAMPLES", 40)
    sample = sample_training(train)
    assert len(sample) == 40 and sample == [each for each in train if each in sample]
    assert 10 <= sum(each.label == "first" for each in sample) <= 30
    monkeypatch.setattr("bertkit.task_types.baselines._MOST_CHARACTERS", 115)
    assert 10 <= len(sample_training(train)) <= 11
    monkeypatch.setattr("bertkit.task_types.baselines._MOST_CHARACTERS", 1)
    assert len(sample_training(train)) == 1


@pytest.mark.parametrize("second", [None, "!?"])
def test_texts_without_words_are_classified_by_their_characters(second: str | None) -> None:
    train = examples(("\U0001f600\U0001f600", "good"), ("\U0001f622\U0001f622", "bad"), second=second)
    assert len(predict_classes(train, train)) == 2
    if second is None:
        assert predict_classes(train, train) == ["good", "bad"]
    blank = examples((" ", "good"), ("\n", "bad"), second=second)
    assert len(predict_classes(blank, blank)) == 2
