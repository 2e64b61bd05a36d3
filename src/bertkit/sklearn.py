"""A BERT classifier for scikit-learn: it works in ``cross_val_score``, ``GridSearchCV`` and ``Pipeline``."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from bertkit.api.finetuning import finetune
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.errors import list_names, usage_error
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.texts import Text, check_texts
from bertkit.options.job import AnyPath

_FEWEST_HELD_OUT = 20
"""Held-out texts below which the best epoch is chosen on the training texts instead."""

_HELD_OUT = 0.1


class BertClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fine-tunes ``model`` (a run, a model folder or a Hugging Face folder) to classify texts, or pairs of texts.

    ``X`` is a list, a NumPy array or a pandas Series of texts, or a list of pairs as tuples; also a table of one column
    (N, 1) or, for pairs, of two (N, 2). ``y`` are classes of any one type. ``epochs``, ``lr`` and ``batch_size`` are
    those of ``bertkit.finetune``, None for its defaults. Texts are cut to ``max_length`` tokens, or to the most that
    the model reads. ``class_weight`` is ``"balanced"`` or a weight by class. Of 200 texts and more a tenth is held out
    to choose the best epoch.

    The fitted model is in a temporary folder, which is deleted with the estimator: ``save`` keeps it.
    """

    def __init__(
        self,
        model: AnyPath | None = None,
        *,
        epochs: int | None = None,
        lr: float | None = None,
        batch_size: int | None = None,
        max_length: int = 128,
        seed: int = 0,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.lr = lr
        self.batch_size = batch_size
        self.max_length = max_length
        self.seed = seed
        self.class_weight = class_weight

    def fit(self, X: Iterable[Text] | NDArray[Any], y: Iterable[Any]) -> Self:  # noqa: N803 - the names of scikit-learn
        """Fine-tune on the texts ``X`` of the classes ``y``."""
        if self.model is None:
            raise usage_error("model is None: BertClassifier needs the folder of a pre-trained model.")
        texts, classes = _check_texts(X), _check_classes(y)
        if len(texts) != len(classes):
            raise usage_error(f"X has {len(texts):,} texts and y {len(classes):,} classes.")
        distinct, indices = _number_classes(classes)
        if len(distinct) < 2:
            raise usage_error(f"y must have at least two different classes; it has {len(distinct)}.")
        for name, value in (("seed", self.seed), ("max_length", self.max_length)):
            if not isinstance(value, int | np.integer):
                raise usage_error(f"{name} is {value!r}; it must be a whole number.")
        names, positions = _name_classes(distinct), ModelFolder.open(self.model).positions
        former, folder = getattr(self, "_own_folder", None), self._make_folder()
        table = _write_table(folder / "train.jsonl", texts, [names[index] for index in indices])
        finetune(
            table,
            model=self.model,
            output=folder / "run",
            dev=None if len(texts) * _HELD_OUT >= _FEWEST_HELD_OUT else table,
            text="text",
            pair="pair" if isinstance(texts[0], tuple) else None,
            label="label",
            kind="classes",
            allow_rare_labels=True,
            epochs=self.epochs,
            lr=self.lr,
            batch_size=self.batch_size,
            first_seed=int(self.seed),
            class_weights=_name_weights(self.class_weight, distinct.tolist(), names),
            no_baseline=True,
            progress="quiet",
            set=[f"task.max_length={min(self.max_length, positions or self.max_length)}"],
        )
        if former is not None:
            shutil.rmtree(former, ignore_errors=True)
        # All at once and last: a fit that fails leaves the model of the one before it whole.
        self._own_folder, self.folder_ = folder, str(folder / "run" / "model")
        self.classes_, self.names_ = distinct, names
        return self

    def predict(self, X: Iterable[Text] | NDArray[Any]) -> NDArray[Any]:  # noqa: N803
        """The class of each text (N), of the type of ``y``."""
        best = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def predict_proba(self, X: Iterable[Text] | NDArray[Any]) -> NDArray[np.float64]:  # noqa: N803
        """The probabilities (N, C) of the classes in ``classes_``."""
        check_is_fitted(self, "folder_")
        predictions = self._pipeline().predict(_check_texts(X))
        rows = [[prediction.scores[name] for name in self.names_] for prediction in predictions]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.names_))

    def save(self, folder: AnyPath) -> None:
        """Copy the fitted model to ``folder``, from which ``bertkit.load`` and the command line read it."""
        check_is_fitted(self, "folder_")
        if Path(folder).exists():
            raise usage_error(f"{folder} exists. Choose another folder.")
        shutil.copytree(self.folder_, folder)

    def _pipeline(self) -> Pipeline:
        if getattr(self, "_loaded_from", None) != self.folder_:
            self._loaded, self._loaded_from = load(self.folder_), self.folder_
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        """With the files of the fitted model, as a copy may outlive this object and its folder."""
        state: dict[str, Any] = super().__getstate__()
        kept = {
            name: value
            for name, value in state.items()
            if name not in ("_loaded", "_loaded_from", "_own_folder", "folder_")
        }
        if "folder_" in state:
            folder = Path(self.folder_)
            kept["_files"] = {
                str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()
            }
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Write the files into a folder of this object's own."""
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            self._own_folder = self._make_folder()
            folder = self._own_folder / "model"
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            self.folder_ = str(folder)

    def _make_folder(self) -> Path:
        """A folder that is removed with this object."""
        folder = Path(tempfile.mkdtemp(prefix="bertkit-"))
        weakref.finalize(self, _remove, folder, os.getpid())
        return folder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.no_validation = True
        return tags


def _remove(folder: Path, process: int) -> None:
    """Remove a folder that ``process`` made. A forked child has a copy of the estimator, not of the folder."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _check_texts(texts: Any) -> list[Text]:
    """The texts, or the pairs, of ``X``; the only column of a table, or its two."""
    values = texts.to_numpy() if hasattr(texts, "columns") and hasattr(texts, "to_numpy") else texts
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] in (1, 2):
        texts = [row[0] if len(row) == 1 else tuple(row) for row in values.tolist()]
    return check_texts(texts, "X")


def _number_classes(classes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The different classes in their order, and the number of the class of each text."""
    for number, each in enumerate(classes.tolist()):
        if each is None or type(each).__name__ in ("NAType", "NaTType") or each != each:
            raise usage_error(f"y[{number}] is {each}; it must be a class.")
    if classes.dtype.kind == "f" and (decimals := classes[classes % 1 != 0]).size:
        raise usage_error(
            f"y has numbers with decimals, such as {decimals[0]}, which are no classes. To predict a number: "
            'bertkit.finetune(..., kind="number").'
        )
    try:
        return np.unique(classes, return_inverse=True)
    except TypeError as error:
        raise usage_error("y has classes of several types, such as 1 and 'one'. Give all of them one type.") from error


def _name_weights(
    weights: Literal["balanced"] | Mapping[Any, float] | None, classes: Sequence[Any], names: Sequence[str]
) -> str | dict[str, float] | None:
    """The weights by the labels in the model."""
    if weights is None or isinstance(weights, str):
        return weights
    unknown = [each for each in weights if each not in classes]
    if unknown:
        raise usage_error(
            f"class_weight has {unknown[0]!r}, which is no class of y: {list_names([str(each) for each in classes])}."
        )
    return {name: float(weights[each]) for each, name in zip(classes, names, strict=True) if each in weights}


def _check_classes(y: Iterable[Any]) -> NDArray[Any]:
    """One class per text (N,); a column (N, 1) is one with a warning, as for other estimators of scikit-learn."""
    try:
        classes: NDArray[Any] = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise usage_error(
            f"y must have one class for each text ({error}). For several labels per text: bertkit.finetune(..., "
            'kind="labels").'
        ) from error
    given = np.asarray(y, dtype=object).ravel()
    # Beside texts NumPy spells numbers as texts: a missing class, NaN, would be a class called "nan".
    return given if classes.dtype.kind == "U" and not all(isinstance(each, str) for each in given) else classes


def _name_classes(classes: Sequence[Any] | NDArray[Any]) -> list[str]:
    """A label in the model for each class; numbered ones where two are spelled alike, or one has half a character or
    looks like an object of JSON, which a table has no labels of."""
    names = [str(each).strip() for each in classes]
    distinct = len({name.casefold() for name in names}) == len(names) and all(names)
    whole = all(name.encode(errors="ignore").decode() == name for name in names)
    are_plain = not any(name.startswith('{"') for name in names)
    return names if distinct and whole and are_plain else [f"class {number}" for number in range(len(names))]


def _write_table(path: Path, texts: Sequence[Text], labels: Sequence[str]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for text, label in zip(texts, labels, strict=True):
            first, second = (text, None) if isinstance(text, str) else text
            pair = {} if second is None else {"pair": second}
            file.write(json.dumps({"text": first, **pair, "label": label}) + "\n")
    return path
