"""What results have in common."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np
import pytest

import bertkit
from bertkit.config.records import to_plain
from bertkit.data.shards import read_manifest
from bertkit.evaluation.compare import Comparison, ScoreDifference
from bertkit.evaluation.report import Evaluation, ScoreInterval
from bertkit.inference.attention_maps import AttentionMaps
from bertkit.inference.conversion import Conversion
from bertkit.inference.embedding import TokenStates
from bertkit.inference.fill import Filling
from bertkit.inference.saliency import Saliency
from bertkit.results import LONGEST_LINE, Result, Results
from bertkit.sweeps.results import PointResult, SweepResult
from bertkit.task_types import Choice, NamedEntity, Prediction, SpanPrediction, TagPrediction
from bertkit.task_types.span_decoder import AnswerSpan

pytestmark = pytest.mark.usefixtures("without_shape_checks")

_SCORE = ScoreInterval(value=0.5, low=0.25, high=0.75)


def test_a_part_of_the_results_are_results() -> None:
    index = np.array(["x", "y"])
    results = Results([Prediction("a", {"a": 1.0}), Prediction("b", {"b": 1.0})], row_index=index)
    part = results[1:]
    assert isinstance(part, Results)
    assert (part[0].label, list(part.row_index)) == ("b", ["y"])
    assert isinstance(Results(part)[:1], Results)


MANY = Prediction("a class with a long name, as they are in taxonomies", {f"class {n}": n / 5000 for n in range(99)}, 7)
TEXT = "the river ran past the old mill " * 99
SHOWN = [
    MANY,
    Prediction(("one", "two", "three", "four", "five"), {"one": 0.5}),
    SpanPrediction(TEXT),
    Choice(1, TEXT, tuple(n / 99 for n in range(99))),
    TagPrediction(("O",) * 99, (0.5,) * 99, (NamedEntity("PER", "Ann", 0, 3, 0.9),)),
    Filling("river", 0.123456789, TEXT, 7),
    TokenStates(("river",) * 99, np.zeros((99, 2), dtype=np.int64), np.zeros((3, 99, 14), dtype=np.float32)),
    AttentionMaps(("river", "ran"), np.zeros((3, 5, 2, 2), dtype=np.float32)),
    Saliency("good", ("river", "ran", "past", "it"), np.arange(4) / 7, 0.5, 0.25),
    Conversion(Path("out"), "BERT", ("class",), 99, is_for_a_task=True, notes=(TEXT,), left_out=()),
    SweepResult(
        folder=Path("s"), metric="accuracy", points=[PointResult(settings={"lr": "1e-4"}, folder=Path("p"))] * 9
    ),
    Comparison(
        first="a",
        second="b",
        task="t",
        split="dev",
        metric="accuracy",
        examples=9,
        resamples=1000,
        scores={"accuracy": ScoreDifference(first=_SCORE, second=_SCORE, difference=_SCORE, p=0.25)},
        disagreements=[],
    ),
]


@pytest.mark.parametrize("result", SHOWN, ids=lambda result: type(result).__name__)
def test_a_result_prints_in_one_short_line_and_is_json(result: Result) -> None:
    assert len(repr(result)) <= LONGEST_LINE < 100
    assert "\n" not in repr(result)
    assert repr(result).startswith(type(result).__name__)
    record = result.to_dict()
    assert json.loads(json.dumps(record)) == record


def test_what_a_verb_returns_is_a_result() -> None:
    functions = [each for name in bertkit.__all__ if inspect.isfunction(each := getattr(bertkit, name))]
    hints = [typing.get_type_hints(function).get("return") for function in functions]
    kinds = [kind for hint in hints for kind in (typing.get_args(hint) if isinstance(hint, UnionType) else [hint])]
    records = [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    assert len(records) > 9
    assert [kind for kind in records if not issubclass(kind, Result)] == []
    assert [kind for kind in records if kind.__dict__["__dataclass_params__"].repr] == []


def test_half_a_character_of_a_text_is_kept() -> None:
    """The texts of a user may have one, and ``json.dumps`` spells it."""
    result = SpanPrediction("a\ud800", (AnswerSpan("a\ud800", 0, 2, 0.5),))
    assert json.loads(json.dumps(result.to_dict()))["text"] == "a\ud800"
    result._repr_html_().encode()


def test_what_the_steps_from_text_to_a_model_return_are_results(workspace: Path, tmp_path: Path) -> None:
    steps: dict[str, Any] = {"size": "1/12/2", "seq_length": 37, "steps": 2, "progress": "quiet"}
    shown = [
        bertkit.corpus_check([workspace / "a.txt"]),
        read_manifest(workspace / "data"),
        bertkit.pretrain(workspace / "data", output=tmp_path / "run", **steps),
        bertkit.pretrain(workspace / "data", plan=True, **steps),
        *bertkit.tokenizer_show(workspace / "tok", "river"),
    ]
    for result in shown:
        test_a_result_prints_in_one_short_line_and_is_json(result)


def test_the_line_shows_what_matters() -> None:
    prediction = Prediction("good", {"bad": 0.0712345, "good": 0.9287655})
    assert repr(prediction) == "Prediction(label='good', scores={good: 0.9288, bad: 0.07123})"
    assert (
        repr(Filling("river", 0.5, "a river", 7)) == "Filling(word='river', probability=0.5, text='a river', token=7)"
    )
    assert "scores={class 98: 0.0196, class 97: 0.0194, class 96: 0.0192, ...}" not in repr(Prediction("x"))
    assert repr(Saliency("good", ("a", "b"), np.array([1.0, -2.0]), 0.5, 0.25)) == (
        "Saliency(prediction='good', tokens=['a', 'b'], contributions=[1, -2], score=0.5, difference=0.25)"
    )
    assert repr(Prediction(0.25)) == "Prediction(label=0.25)"


def test_control_characters_do_not_reach_a_terminal_or_a_page() -> None:
    result = Filling("\x1b[31m<script>", 0.5, "a\u202eb", 7)
    assert "\x1b" not in repr(result)
    assert "\u202e" not in repr(result)
    assert "<script>" not in result._repr_html_()
    assert "\x1b" not in Results([result])._repr_html_()


def test_a_list_of_results_is_a_list_and_a_table() -> None:
    results = Results([Prediction("good", {"good": 0.75, "bad": 0.25}), Prediction("bad", {"good": 0.5, "bad": 0.5})])
    assert results == list(results)
    assert results.to_dicts()[0]["scores"] == {"good": 0.75, "bad": 0.25}
    assert results._repr_html_().count("<tr>") == 3
    assert to_plain(results) == results.to_dicts()
    assert repr(Results([MANY] * 1000)).endswith("995 more]")
    assert "980 more" in Results([MANY] * 1000)._repr_html_()


def test_scores_are_columns_of_a_data_frame() -> None:
    pytest.importorskip("pandas")
    frame = Results([Prediction("good", {"good": 0.75, "bad": 0.25}), Prediction("bad", {"good": 0.5})]).to_pandas()
    assert list(frame.columns) == ["label", "scores.good", "scores.bad", "num_truncated"]
    assert frame["scores.good"].tolist() == [0.75, 0.5]


def test_a_data_frame_of_predictions_has_the_index_of_its_texts() -> None:
    pandas = pytest.importorskip("pandas")
    results = Results([Prediction("good"), Prediction("bad")], row_index=pandas.Index([70, 71]))
    assert list(results.to_pandas().index) == [70, 71]
    assert results.index(Prediction("bad")) == 1
    results.sort(key=lambda each: each.label)
    frame = results.to_pandas()
    assert (list(frame.index), list(frame["label"])) == ([71, 70], ["bad", "good"])
    assert list(results[1:].to_pandas().index) == [70]
    del results[0]
    assert list(results.to_pandas().index) == [70]
    results.append(Prediction("another"))
    assert list(results.to_pandas().index) == [0, 1], "not all are of the table"


def test_an_evaluation_is_one_line() -> None:
    scores = {"accuracy": ScoreInterval(value=0.75, low=0.5, high=1.0)}
    evaluation = Evaluation(
        task="t", split="dev", metric="accuracy", examples=7, resamples=3, scores=scores, lengths=[], worst=[]
    )
    assert repr(evaluation) == "Evaluation(t, dev: accuracy=0.7500; 7 examples)"
    assert evaluation.to_dict()["accuracy"] == 0.75
    assert evaluation._repr_html_().startswith("<table>")


def test_an_entity_is_a_tuple_and_a_record() -> None:
    entity = NamedEntity("PER", "Ann", 0, 3, 0.97)
    assert entity.to_dict() == {"type": "PER", "text": "Ann", "start": 0, "end": 3, "score": 0.97}


def test_a_tokenizer_is_loaded_from_its_folder_a_run_or_a_model(workspace: Path) -> None:
    one, other = (bertkit.load_tokenizer(workspace / name) for name in ("tok", "run"))
    assert one.fingerprint == other.fingerprint
    assert bertkit.load_tokenizer(workspace / "run" / "model").encode("river").ids == one.encode("river").ids
