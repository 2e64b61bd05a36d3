"""Integrated gradients: their sum is the difference that they explain, for every head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.server.running import LENGTH, save_tiny_models
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import load
from bertkit.inference.saliency import Saliency, can_explain, explain
from bertkit.model import Model
from bertkit.task_types import (
    MultiLabelTask,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    TaggingTask,
    TextClassificationTask,
    from_record,
)
from bertkit.task_types.regression import Numbers, RegressionTask

TEXT = "seven wide rivers ran past the mill"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_models(tmp_path_factory.mktemp("models"))


def check(found: Saliency) -> None:
    """Completeness (axiom 1 of the paper), within the error of the sum over steps."""
    assert len(found.tokens) == len(found.contributions)
    assert np.abs(found.contributions).sum() > 0
    assert found.contributions.sum() == pytest.approx(found.difference, abs=0.05 * np.abs(found.contributions).sum())


@pytest.mark.parametrize(
    ("name", "text", "second"),
    [
        ("reviews", TEXT, None),
        ("topics", TEXT, None),
        ("inference", TEXT, "the mill"),
        ("ranker", TEXT, "the mill"),
        ("names", TEXT, None),
        ("questions", "who ran", TEXT),
        ("words", "the [MASK] ran", None),
    ],
)
def test_contributions_sum_to_what_they_explain(folder: Path, name: str, text: str, second: str | None) -> None:
    check(explain(load(folder / name), text, second))


def test_the_prediction_is_that_of_the_model(folder: Path) -> None:
    found = explain(load(folder / "reviews"), TEXT)
    assert found.prediction == load(folder / "reviews").classify(TEXT).label
    assert found.tokens[0] == "[CLS]"
    best = load(folder / "words").fill("the [MASK] ran", 1)[0][0]
    assert explain(load(folder / "words"), "the [MASK] ran").prediction.removeprefix("##") == best.word.removeprefix(
        "##"
    )


def test_a_token_like_padding_contributes_nothing(folder: Path) -> None:
    """The path of a token that is the baseline itself has no length."""
    pipeline = load(folder / "words")
    found = explain(pipeline, "the [PAD] [MASK] ran")
    places = [place for place, token in enumerate(found.tokens) if token == "[PAD]"]
    assert [found.contributions[place] for place in places] == [0.0] * len(places)
    assert places


def test_a_number_is_on_the_scale_of_predictions(folder: Path) -> None:
    pipeline = load(folder / "ranker")
    assert isinstance(pipeline.task, RegressionTask)
    pipeline.task = replace(pipeline.task, numbers=Numbers(unit=10.0, origin=100.0))
    (predicted,) = pipeline.predict([(TEXT, "the mill")])
    found = explain(pipeline, TEXT, "the mill")
    assert found.prediction == f"{predicted.label:.3f}"
    check(found)


@pytest.mark.parametrize("changes", [{"longest": 2}, {"null": True, "threshold": -99.0}, {}])
def test_the_answer_is_that_of_the_model(folder: Path, changes: dict[str, Any]) -> None:
    pipeline = load(folder / "questions")
    pipeline.task = replace(pipeline.task, **changes)
    found = explain(pipeline, "who ran", TEXT)
    assert found.prediction == (pipeline.answer("who ran", TEXT).text or "no answer")
    check(found)


def test_what_was_not_read_is_counted(folder: Path) -> None:
    assert explain(load(folder / "reviews"), TEXT).num_truncated == 0
    tokens = len(load(folder / "reviews").tokenizer.encode(TEXT * 9).ids)
    assert explain(load(folder / "reviews"), TEXT * 9).num_truncated == tokens - (LENGTH - 2)
    words = load(folder / "words")
    assert explain(words, f"[MASK] {TEXT * 9}").num_truncated == tokens + 1 - (words.max_length - 2)


def test_what_cannot_be_explained_is_one_line(folder: Path) -> None:
    for name, text, message in (
        ("words", TEXT, r"write \[MASK\] in place of one"),
        ("questions", "who", r"give the text with the answer as the pair\.$"),
        ("names", "\u200b", "has no word that the model reads"),
        ("reviews", " \n", "text is empty: there is nothing to read"),
        ("names", TEXT * 9, "longer than a window of 33 tokens: shorten it"),
        ("choices", TEXT, "masked words, and not for multiple-choice"),
        ("words", f"{TEXT} " * 99 + "[MASK]", r"the masked word comes after the \d+ tokens that are read: shorten it"),
    ):
        with pytest.raises(BertkitError, match=message):
            explain(load(folder / name), text)
    with pytest.raises(BertkitError, match=r"reads one text: leave out the pair\.$"):
        explain(load(folder / "reviews"), TEXT, "the mill")
    with pytest.raises(BertkitError, match="fills in words and reads one text: leave out the pair"):
        explain(load(folder / "words"), "the [MASK] ran", "the mill")
    with pytest.raises(BertkitError, match="tags words and reads one text: leave out the pair"):
        explain(load(folder / "names"), TEXT, "the mill")


def test_a_tagger_that_finds_no_name_has_nothing_to_explain(folder: Path, tmp_path: Path) -> None:
    names = load(folder / "names").models[0]
    task = from_record(names.metadata["task"])
    model = names.load_model(task.objectives)
    (outside,) = (each for each in model.objectives.parameters() if each.shape == (len(task.labels),))
    with torch.no_grad():
        outside[task.labels.index("O")] = 99.0
    save_model(tmp_path / "outside", model, names.tokenizer, metadata={"task": names.metadata["task"]})
    with pytest.raises(BertkitError, match='gives every word the tag "O": there is no other tag to explain'):
        explain(load(tmp_path / "outside"), TEXT)


def test_the_tag_is_one_that_the_model_gives(folder: Path) -> None:
    pipeline = load(folder / "names")
    given = next(iter(pipeline.predict([TEXT]))).label
    named = {f'{tag} for "{word}"' for word, tag in zip(TEXT.split(), given, strict=True) if tag != "O"}
    assert explain(pipeline, TEXT).prediction in named


def test_a_task_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    record = {"type": "no_such_module:OwnTask", "name": "own"}
    save_model(tmp_path / "own", Model(make_encoder(tokenizer), {}), tokenizer, metadata={"task": record})
    with pytest.raises(BertkitError, match="no_such_module"):
        explain(load(tmp_path / "own"), TEXT)


def test_of_several_labels_one_that_is_predicted_is_explained(folder: Path) -> None:
    """A rare label has a low threshold, and a frequent one may be more probable and still below its own."""
    pipeline = load(folder / "topics")
    task = pipeline.task
    assert isinstance(task, MultiLabelTask)
    scores = pipeline.classify(TEXT).scores
    first, *_, last = sorted(task.labels, key=lambda label: -scores[label])
    none, every = dict.fromkeys(task.labels, 1.0), dict.fromkeys(task.labels, 0.0)
    for thresholds, expected in ((none, first), (every, first), (none | {last: 0.0}, last)):
        pipeline.task = replace(task, thresholds=thresholds)
        assert explain(pipeline, TEXT).prediction == expected


def test_what_can_be_explained() -> None:
    tags = TaggingTask(name="t", labels=("O", "B-x", "I-x"))
    pairs = TextClassificationTask(name="p", metric="accuracy", labels=("a", "b"), pair=True)
    assert all(can_explain(task) for task in (None, tags, pairs, QuestionAnsweringTask(name="q")))
    assert not can_explain(replace(tags, crf=True))
    assert not can_explain(replace(pairs, both_orders=True))
    assert not can_explain(MultipleChoiceTask(name="c"))
