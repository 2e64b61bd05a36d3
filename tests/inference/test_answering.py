"""Questions to a model from Python and from files: places in the context, official files, long contexts among short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference import predict as predicting
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.prediction_files import predict_file
from bertkit.model import Model
from bertkit.task_files import squad_files
from bertkit.task_types import QuestionAnsweringTask, SpanExample, TextClassificationTask
from bertkit.text.wordpiece import WordPiece

CONTEXT = "Seven wide rivers ran slowly past the old stone mill"


TASK = QuestionAnsweringTask(name="files:t.json", null=True, rules="v2", max_length=23, stride=5)


@pytest.fixture
def answering(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> Pipeline:
    model = Model(encoder, TASK.objectives(encoder))
    for weight in model.objectives.parameters():
        torch.nn.init.normal_(weight, std=2.0)
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": TASK.record()})
    return load(tmp_path / "model")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    rows = [{"id": f"q{n}", "question": f"where ran the {word}?"} for n, word in enumerate(CONTEXT.split())]
    content = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": rows}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path / "dev.json"


def ignore(done: int) -> None: ...


def test_an_answer_is_where_it_says(answering: Pipeline) -> None:
    found = answering.answer("which rivers ran?", CONTEXT)
    assert found.n_best
    for passage in found.n_best:
        assert CONTEXT[passage.start : passage.end] == passage.text
    assert (found.text == "") == (found.null_odds > 0) == (found.start is None)
    assert 0 < found.score <= 1


def test_the_official_files(answering: Pipeline, questions: Path, tmp_path: Path) -> None:
    assert predict_file(answering, questions, tmp_path / "p.json", ignore) == 10
    predictions = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    odds = json.loads((tmp_path / "p.null_odds.json").read_text(encoding="utf-8"))
    assert list(predictions) == list(odds) == [f"q{n}" for n in range(10)]
    assert all((predictions[id] == "") == (odds[id] > 0) for id in odds)
    assert len(set(odds.values())) > 5


def test_tables_of_answers_have_their_places(answering: Pipeline, questions: Path, tmp_path: Path) -> None:
    predict_file(answering, questions, tmp_path / "p.csv", ignore)
    predict_file(answering, questions, tmp_path / "p.txt", ignore)
    lines = (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,answer,start,end,probability"
    texts = (tmp_path / "p.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert [line.split(",")[1] for line in lines[1:]] == texts


def test_a_text_classifier_cannot_answer_questions(
    tmp_path: Path, model: Model, tokenizer: WordPiece, task: TextClassificationTask
) -> None:
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": task.record()})
    with pytest.raises(BertkitError, match=r"is fine-tuned for files:t\.csv and cannot answer questions: use classify"):
        load(tmp_path / "model").answer("who?", "the miller")


def test_long_contexts_among_short_ones_change_no_answer(answering: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is in memory at a time is bounded by windows, not by examples."""
    seen: list[int] = []
    run = predicting.run_features

    def note(model: Model, features: list[object], *rest: object) -> object:
        seen.append(len(features))
        return run(model, features, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(predicting, "run_features", note)
    monkeypatch.setattr(predicting, "BATCHES_IN_A_CHUNK", 2)
    examples = [SpanExample(str(n), "who ran?", CONTEXT * (1 + 9 * (n % 3 == 1))) for n in range(7)]
    together = list(answering.stream(examples, batch_size=4))
    windows = [len(answering.task.encode(example, answering.tokenizer)) for example in examples]
    assert sum(seen) == sum(windows)
    assert max(windows) > 8
    assert max(seen) < 8 + max(windows)
    assert len(seen) > 2
    alone = [next(iter(answering.stream([example]))) for example in examples]
    assert [each.text for each in together] == [each.text for each in alone]


def test_examples_are_read_lazily(answering: Pipeline) -> None:
    taken: list[int] = []

    def ask() -> Iterator[SpanExample]:
        for number in range(10_000):
            taken.append(number)
            yield SpanExample(str(number), "who ran?", CONTEXT * 20)

    next(iter(answering.stream(ask(), batch_size=2)))
    assert len(taken) < 1000


def test_questions_are_parsed_once_for_a_json_of_answers(
    answering: Pipeline, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[Path] = []
    original = squad_files.read_json_file

    def noting(path: Path) -> object:
        parsed.append(path)
        return original(path)

    monkeypatch.setattr(squad_files, "read_json_file", noting)
    predict_file(answering, questions, tmp_path / "out.json", lambda done: None)
    assert parsed == [questions], "ids are made unique when they are read, so that there is nothing to check before"
