"""Several labels for one text: reading cells, weights and thresholds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.task_types.small_tables import task as task
from tests.task_types.small_tables import write

from bertkit.batch import IGNORE
from bertkit.config.settings import apply, parse_settings
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BAD_DATA, BertkitError
from bertkit.formats.tables import Table
from bertkit.inference.prediction_formats import find_writer
from bertkit.model import Model
from bertkit.task_types import (
    MultiLabelTask,
    TextExample,
    from_record,
)
from bertkit.task_types.baselines import BEST_SINGLE
from bertkit.task_types.text_task import Prediction
from bertkit.user_tables.guess import guess


def outputs(task: MultiLabelTask, example: TextExample) -> dict[str, np.ndarray[Any, Any]]:
    """What a model would say that is sure of the gold answer."""
    assert isinstance(example.label, tuple)
    return {"logits": np.array([7.0 if label in example.label else -7.0 for label in task.labels])}


def test_cells_are_read_in_all_their_spellings(task: MultiLabelTask) -> None:
    assert task.labels == ("bright", "dull", "long")
    assert [example.label for example in list(task.reader.rows("train"))[:7]] == [
        ("dull", "long"),
        ("long",),
        None,
        ("bright",),
        ("bright", "dull", "long"),
        (),
        ("bright", "long"),
    ]
    assert "7 rows of train have no label and are left out" in task.reader.notes()


@pytest.mark.parametrize("separator", [";", "|", ","])
def test_predictions_in_a_file_are_read_by_their_task(separator: str, tmp_path: Path) -> None:
    task = MultiLabelTask(name="m", labels=("a;b", "c|d", "e,f", "g"), separator=separator)
    answers = [("a;b", "c|d"), ("e,f", "g"), (), ("g",)]
    records = [{"id": str(row), "label": list(answer)} for row, answer in enumerate(answers)]
    find_writer(tmp_path / "p.csv")(records, tmp_path / "p.csv", task.answer_columns)
    cells = [row.cells[0] for row in Table(tmp_path / "p.csv").rows("label")]
    assert [task.read_label(cell, "") for cell in cells] == answers


def test_the_guess_is_described(tmp_path: Path) -> None:
    found = guess(write(tmp_path / "t.jsonl", ["a;b", "b", "a", "c", "c;b"]), label="tags")
    assert found.sentence == (
        'text = text, label = tags (several of 3 labels, 1.4 per text, ";" between: a 14, b 21, c 14)'
    )
    assert isinstance(found.task, MultiLabelTask)
    assert (found.task.metric, found.task.also) == ("micro_f1", ("micro_f1", "macro_f1", "subset_accuracy"))


def test_lists_of_jsonl_are_labels(tmp_path: Path) -> None:
    rows = [{"text": f"film {row}", "tags": [["a", "b"], ["b"], []][row % 3]} for row in range(30)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = guess(tmp_path / "t.jsonl", label="tags").task
    assert [example.label for example in list(task.reader.rows("train"))[:3]] == [("a", "b"), ("b",), ()]


def test_gold_answers_score_perfectly(task: MultiLabelTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("dev")
    predictions = [task.decode(each, task.encode(each, tokenizer), [outputs(task, each)]) for each in examples]
    assert [each.label for each in predictions] == [each.label for each in examples]
    assert set(task.score(examples, predictions).values()) == {1.0}


def test_unlabelled_examples_are_encoded_and_not_scored(task: MultiLabelTask, tokenizer: Tokenizer) -> None:
    example = TextExample("1", "a film")
    (feature,) = task.encode(example, tokenizer)
    assert np.asarray(feature.labels["labels"]).tolist() == [IGNORE] * 3
    with pytest.raises(BertkitError, match="1 of 1 example has no label"):
        task.score([example], [])


def test_gradients_reach_every_parameter_of_the_head(task: MultiLabelTask, tokenizer: Tokenizer) -> None:
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=13, num_layers=1, num_heads=1, intermediate_size=7))
    model = Model(encoder, task.objectives(encoder))
    features = [feature for example in task.examples("train") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    (term,) = model.loss(model(batch), batch).values()
    term.sum.backward()  # type: ignore[no-untyped-call]
    assert term.count == 42 * 3
    assert all(weight.grad is not None and weight.grad.any() for weight in model.objectives.parameters())


def test_the_record_is_json_and_comes_back_equal(task: MultiLabelTask) -> None:
    tuned = apply(task, parse_settings(["thresholds.dull=0.25", "class_weights.long=3"]))
    assert tuned.thresholds == {"dull": 0.25}
    assert from_record(json.loads(json.dumps(tuned.record()))) == tuned


def test_predictions_are_described_with_every_score(task: MultiLabelTask, tokenizer: Tokenizer) -> None:
    example = TextExample("7", "a film", None, ("long",))
    prediction = task.decode(example, task.encode(example, tokenizer), [outputs(task, example)])
    record = json.loads(json.dumps(task.describe(example, prediction)))
    assert record == {"id": "7", "label": ["long"], "scores": {"bright": 0.000911, "dull": 0.000911, "long": 0.999089}}


def test_the_baseline_is_the_one_with_the_best_score(task: MultiLabelTask) -> None:
    """Of labels that 4 of 10 texts have, and no text two: none of them is the most frequent answer, and scores 0."""
    labels = task.labels[:2]
    rows = [TextExample(str(number), "a", None, ()) for number in range(3)]
    rows += [TextExample("x", "a", None, (labels[number % 2],)) for number in range(4)]
    (answer,) = {each.label for each in task.baselines()[BEST_SINGLE](rows, rows[:5])}
    assert answer == labels


def test_rare_labels_share_a_threshold() -> None:
    """A label of one example would otherwise be given to every text that has no higher probability."""
    names = tuple("abc")
    gold = [("a",)] * 9 + [("b",), ("c",)] + [()] * 9
    scores = {"a": 0.6, "b": 0.1, "c": 0.9}
    examples = [TextExample(str(row), "text", None, labels) for row, labels in enumerate(gold)]
    predictions = [
        Prediction((), {name: scores[name] if name in labels else 0.2 for name in names}, 0) for labels in gold
    ]
    task, decided = MultiLabelTask(name="m", labels=names).calibrate(examples, predictions)
    assert task.thresholds["b"] == task.thresholds["c"] == pytest.approx(0.55)
    assert task.thresholds["a"] == pytest.approx(0.4)
    assert [each.label for each in decided[8:12]] == [("a",), (), ("c",), ()]


def test_lists_as_pandas_writes_them_are_labels(tmp_path: Path) -> None:
    rows = [f'film {number},"{cell}"' for number, cell in enumerate(["['a', 'b']", "[]", "['b']"] * 9)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    task = guess(tmp_path / "t.csv").task
    assert isinstance(task, MultiLabelTask)
    assert [each.label for each in task.reader.rows("train")][:3] == [("a", "b"), (), ("b",)]


def test_a_label_that_only_dev_has_is_refused(tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", ["dull;long", "long", "dull"])
    dev = write(tmp_path / "dev.jsonl", ["dull;log"])
    with pytest.raises(BertkitError, match=r'dev.jsonl, line 1: unknown label "log"') as caught:
        guess(train, dev=dev, label="tags")
    assert caught.value.exit_code == BAD_DATA


def test_an_empty_list_makes_the_column_multi_label(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,labels\none,a;b\ntwo,b\nthree,[]\n", encoding="utf-8")
    task = guess(path).task
    assert task.labels == ("a", "b")
    assert [example.label for example in task.reader.rows("train")] == [("a", "b"), ("b",), ()]


def test_a_typo_in_one_of_several_labels_is_an_error_with_its_line(tmp_path: Path) -> None:
    table = write(tmp_path / "t.jsonl", [*["bright;long", "long", "bright"] * 7, "long;brigth"], repeats=1)
    with pytest.raises(BertkitError, match=r't.jsonl, line 22: label "brigth" occurs once; "bright" occurs 14 times'):
        guess(table, label="tags")


def test_weights_of_labels_are_balanced_by_name(task: MultiLabelTask) -> None:
    weights = task.weighted("balanced").class_weights
    assert weights == {"bright": pytest.approx(1.0), "dull": pytest.approx(2.0), "long": pytest.approx(0.5)}
