"""The estimator for scikit-learn."""

from __future__ import annotations

import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from tests.formats.memory_tables import frame
from tests.tiny_bert import make_encoder, make_tokenizer
from tests.workspace import WORDS

import bertkit
from bertkit.checkpoint.save_model import save_model
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.sklearn import BertClassifier

pytestmark = pytest.mark.usefixtures("without_shape_checks")

QUICK: dict[str, Any] = {"epochs": 30, "lr": 1e-2, "batch_size": 7, "max_length": 13}
CHECKS = (
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_cloneable",
    "check_mixin_order",
)
"""Those of scikit-learn's checks that need no table of numbers."""


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], np.ndarray[Any, Any]]:
    """Texts with the word river are of class 1, the others of class 0."""
    generator = random.Random(7)
    classes = [row % 2 for row in range(48)]
    words = [word for word in WORDS if word != "river"]
    return [" ".join([*generator.choices(words, k=3), *["river"] * each]) for each in classes], np.array(classes)


@pytest.fixture(scope="module")
def fitted(workspace: Path, texts: tuple[list[str], Any]) -> BertClassifier:
    return BertClassifier(workspace / "run", **QUICK).fit(*texts)


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_of_scikit_learn_pass(check: str, workspace: Path) -> None:
    getattr(estimator_checks, check)("BertClassifier", BertClassifier(workspace / "run"))


def test_classes_and_probabilities_are_those_of_y(fitted: BertClassifier, texts: tuple[list[str], Any]) -> None:
    probabilities = fitted.predict_proba(np.array(texts[0]))
    assert probabilities.shape == (48, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    predicted = fitted.predict(texts[0])
    assert predicted.dtype == texts[1].dtype
    np.testing.assert_array_equal(predicted, fitted.classes_[probabilities.argmax(axis=1)])
    assert fitted.score(*texts) > 0.6
    assert fitted.predict_proba([]).shape == (0, 2)


def test_it_works_in_cross_validation_and_in_a_pipeline(workspace: Path, texts: tuple[list[str], Any]) -> None:
    estimator = make_pipeline(
        FunctionTransformer(lambda texts: [text.lower() for text in texts]),
        BertClassifier(workspace / "run", epochs=1, batch_size=16, max_length=13),
    )
    scores = cross_val_score(estimator, np.array(texts[0]), texts[1], cv=2)
    assert scores.shape == (2,)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_saved_and_a_pickled_estimator_predict_the_same(
    fitted: BertClassifier, texts: tuple[list[str], Any], tmp_path: Path
) -> None:
    expected = fitted.predict_proba(texts[0][:7])
    copy = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(fitted))))  # the object between is gone
    np.testing.assert_allclose(copy.predict_proba(texts[0][:7]), expected, atol=1e-6)
    shutil.rmtree(copy.folder_)  # a copy has a folder of its own
    np.testing.assert_allclose(fitted.predict_proba(texts[0][:7]), expected, atol=1e-6)
    fitted.save(tmp_path / "kept")
    kept = bertkit.load(tmp_path / "kept").classify(texts[0][:7])
    np.testing.assert_allclose([[each.scores["0"], each.scores["1"]] for each in kept], expected, atol=1e-6)
    with pytest.raises(BertkitError, match="kept exists"):
        fitted.save(tmp_path / "kept")


def test_pairs_and_classes_that_are_spelled_alike(workspace: Path) -> None:
    pairs = [("river stone", "early"), ("garden", "music letter"), ("winter", "silver")] * 3
    estimator = BertClassifier(workspace / "run", epochs=1, max_length=13)
    for names in (["Yes", "yes ", "no"], ['{"a": 1}', "b", "c"]):
        estimator.fit(pairs, names * 3)
        assert set(estimator.predict(pairs)) <= set(names)
        assert estimator.names_ == ["class 0", "class 1", "class 2"]


def test_mistakes_are_one_line(workspace: Path) -> None:
    with pytest.raises(NotFittedError):
        BertClassifier(workspace / "run").predict(["a"])
    wrong: list[tuple[Any, str]] = [
        ((["a", "b"], [1]), "X has 2 texts and y 1 classes"),
        ((["a", "b"], [1, 1]), "y must have at least two different classes; it has 1"),
        ((["a", "b"], [1.0, float("nan")]), r"y\[1\] is nan; it must be a class"),
        ((["a", "b"], ["x", None]), r"y\[1\] is None; it must be a class"),
        ((["a", "b"], ["x", float("nan")]), r"y\[1\] is nan; it must be a class"),
        ((["a", "b"], ["x", 1]), "y has classes of several types"),
        ((["a", "b"], [1.0, 0.5]), "y has numbers with decimals, such as 0.5, which are no classes"),
        ((["a", "b"], np.array([1, "one"], dtype=object)), "y has classes of several types"),
        ((["a", None], [0, 1]), r"X"),
    ]
    for arguments, message in wrong:
        with pytest.raises((BertkitError, TypeError), match=message):  # a TypeError where types are checked
            BertClassifier(workspace / "run").fit(*arguments)
    with pytest.raises(BertkitError, match="model is None"):
        BertClassifier().fit(["a", "b"], [0, 1])
    with pytest.raises(BertkitError, match="class_weight has 'z', which is no class of y: x, y"):
        BertClassifier(workspace / "run", class_weight={"z": 2}).fit(["a", "b"], ["x", "y"])
    with pytest.raises((BertkitError, TypeError), match="max_length"):
        BertClassifier(workspace / "run", max_length=cast(int, None)).fit(["a", "b"], ["x", "y"])
    with pytest.raises((BertkitError, TypeError), match="seed"):
        BertClassifier(workspace / "run", seed=cast(int, None)).fit(["a", "b"], ["x", "y"])


def test_a_seed_of_numpy_is_taken_as_a_grid_has_it(workspace: Path, texts: tuple[list[str], Any]) -> None:
    quick = {**QUICK, "epochs": 1}
    assert len(BertClassifier(workspace / "run", **quick).set_params(seed=np.int64(3)).fit(*texts).classes_) == 2


def test_texts_are_cut_to_what_the_model_reads(tmp_path: Path) -> None:
    encoder = make_encoder(make_tokenizer())
    save_model(tmp_path / "model", Model(encoder, {}), make_tokenizer(), metadata={})
    assert encoder.config.max_positions < 128
    found = BertClassifier(tmp_path / "model", epochs=1).fit(["a mill", "the river"] * 3, [0, 1] * 3)
    assert bertkit.load(found.folder_).task.max_length == encoder.config.max_positions


def test_a_missing_class_of_pandas_is_one_line(workspace: Path) -> None:
    classes = frame(y=["x", None])["y"].astype("string")
    with pytest.raises(BertkitError, match=r"y\[1\] is <NA>; it must be a class"):
        BertClassifier(workspace / "run").fit(["a", "b"], classes)


def test_texts_may_be_columns_of_a_table_and_classes_weighted(workspace: Path) -> None:
    texts, classes = ["river stone", "garden"] * 5, [7, 8] * 5
    estimator = BertClassifier(workspace / "run", epochs=1, max_length=13, class_weight={8: 1000.0})
    estimator.fit(frame(words=texts), classes)
    expected = estimator.predict_proba(texts)
    np.testing.assert_array_equal(estimator.predict_proba(np.array(texts)[:, None]), expected)
    unweighted = BertClassifier(workspace / "run", epochs=1, max_length=13).fit(texts, classes)
    assert unweighted.predict_proba(texts)[:, 1].mean() < expected[:, 1].mean()
    pairs = list(zip(texts, reversed(texts), strict=True))
    of_pairs = BertClassifier(workspace / "run", epochs=1, max_length=13).fit(np.array(pairs), classes)
    np.testing.assert_array_equal(of_pairs.predict_proba(np.array(pairs)), of_pairs.predict_proba(pairs))


def test_classes_have_one_dimension(workspace: Path, texts: tuple[list[str], Any]) -> None:
    with pytest.raises(BertkitError, match=r"y must have one class for each text .*kind=.labels."):
        BertClassifier(workspace / "run").fit(texts[0], np.stack([texts[1]] * 2, axis=1))
    with pytest.warns(DataConversionWarning, match="column-vector"):
        BertClassifier(workspace / "run", epochs=1, max_length=13).fit(texts[0], texts[1][:, None])


def test_the_temporary_folder_goes_with_the_estimator(workspace: Path) -> None:
    estimator = BertClassifier(workspace / "run", epochs=1, max_length=13)
    estimator.fit(["river stone", "garden"] * 5, [0, 1] * 5)
    folder = Path(estimator.folder_)
    assert folder.exists()
    assert not hasattr(clone(estimator), "folder_")
    estimator.fit(["river stone", "garden"] * 5, [0, 1] * 5)
    assert not folder.exists()
    folder = Path(estimator.folder_)
    assert estimator.predict(["garden"]).shape == (1,)
    del estimator
    assert not folder.exists()


def test_a_fit_that_fails_leaves_the_model_before_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = BertClassifier(workspace / "run", epochs=1, max_length=13)
    texts = ["river stone", "garden"] * 5
    estimator.fit(texts, ["neg", "pos"] * 5)
    before = estimator.predict_proba(["garden"])

    def stop(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bertkit.sklearn.finetune", stop)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(texts, ["1 star", "5 stars", "3 stars", "1 star", "5 stars"] * 2)
    assert estimator.classes_.tolist() == ["neg", "pos"]
    assert (estimator.predict_proba(["garden"]) == before).all()


_FORK = """
import os, sys
from bertkit.sklearn import BertClassifier
estimator = BertClassifier()
folder = estimator._make_folder()
if os.fork() == 0:
    sys.exit()
os.wait()
print(folder.is_dir())
del estimator
print(folder.is_dir())
"""


def test_a_forked_process_leaves_the_folder_to_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"]
