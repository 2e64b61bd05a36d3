"""What every task on the shelf must do. A new file in ``tasks`` is covered without an edit here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertkit import lookup as names
from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.task_types import Prediction, TextClassificationTask, TextExample, from_record
from bertkit.task_types.task_files import Split

TASKS: dict[str, TextClassificationTask] = names.values("tasks", TextClassificationTask)
WORDS = ["seven", "wide", "rivers", "ran", "slowly", "past", "the", "old", "stone", "mill", "before", "dawn"]
ROWS = 13


@pytest.fixture(params=TASKS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def task(name: str, tmp_path: Path) -> TextClassificationTask:
    """The task with small files of its own layout: thirteen rows in each."""
    task = TASKS[name]
    for split in task.files.splits.values():
        _write(task, split, tmp_path / split.files[0])
    return task.at(tmp_path)


def _write(task: TextClassificationTask, split: Split, path: Path) -> None:
    form, columns = split.form, split.columns
    assert form is not None
    known = [each for each in (columns.id, columns.first, columns.second, columns.label) if each is not None]
    header = form.names or ("#0", *known)
    rows = [] if form.names else [header]
    for number in range(ROWS):
        cells = {
            columns.id: f"row-{number}",
            columns.first: f'"{" ".join(WORDS[number % 5 :])} {number}',
            columns.second: f"{WORDS[number % 7]} 'twas {number}",
            columns.label: _label_cell(task, number),
        }
        rows.append(tuple(cells.get(column, "-") for column in header))
    path.write_text("".join(form.delimiter.join(row) + "\n" for row in rows), encoding="utf-8")


def _label_cell(task: TextClassificationTask, number: int) -> str:
    spellings = task.spellings or task.labels
    return spellings[number % len(spellings)] if spellings else f"{number % 6}.250"[:5].replace("5.250", "5.000")


def _outputs(task: TextClassificationTask, example: TextExample) -> dict[str, np.ndarray[Any, Any]]:
    """What a model would say that is sure of the gold answer."""
    if task.labels:
        return {"logits": np.array([9.0 if label == example.label else -3.0 for label in task.labels])}
    assert isinstance(example.label, float)
    return {"value": np.array((example.label - task.numbers.origin) / task.numbers.unit)}


def test_the_name_is_what_the_user_types(name: str) -> None:
    assert TASKS[name].name == name


def test_it_says_what_it_is_about(task: TextClassificationTask) -> None:
    assert task.about.endswith(".")
    assert task.labels == tuple(dict.fromkeys(task.labels))
    assert not task.spellings or len(task.spellings) == len(task.labels)


def test_it_reads_every_split_in_order(task: TextClassificationTask) -> None:
    for split in task.files.splits:
        examples = task.examples(split)
        assert len(examples) == ROWS
        assert [int(example.first.split()[-1]) for example in examples] == list(range(ROWS))
        assert all(example.first.startswith('"') for example in examples), "a quotation mark is a character"
        assert all((example.second is not None) == task.pair for example in examples)
        assert all((example.label is None) == split.startswith("test") for example in examples)


def test_gold_answers_score_perfectly(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("dev")
    predictions = [
        task.decode(example, task.encode(example, tokenizer), [_outputs(task, example)]) for example in examples
    ]
    for example, prediction in zip(examples, predictions, strict=True):
        assert prediction.label == pytest.approx(example.label)
        assert sum(prediction.scores.values()) == pytest.approx(1.0 if task.labels else 0.0)
    scores = task.score(examples, predictions)
    assert task.metric in scores
    assert all(score == pytest.approx(1.0) for score in scores.values())


def test_a_constant_answer_scores_a_number(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("dev")
    same = [_outputs(task, examples[0])] * ROWS
    predictions = [task.decode(example, [], [output]) for example, output in zip(examples, same, strict=True)]
    assert all(-1.0 <= score < 1.0 for score in task.score(examples, predictions).values())


def test_unlabelled_examples_are_encoded_and_not_scored(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("test")
    assert len(examples) == ROWS
    features = [feature for example in examples for feature in task.encode(example, tokenizer)]
    for feature in features:
        assert list(feature.labels.values()) == [IGNORE]
    with pytest.raises(BertkitError, match="13 of 13 examples have no label"):
        task.score(examples, [])


def test_features_fit_the_length(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    long = TextExample("1", "word " * 700, "other " * 700 if task.pair else None)
    (feature,) = task.encode(long, tokenizer)
    assert len(feature) == task.max_length


def test_what_does_not_fit_is_counted_or_read_in_windows(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    first, second = "word " * 700, "other " * 30 if task.pair else None
    (cut,) = task.encode(TextExample("1", first, second), tokenizer)
    texts = 730 if task.pair else 700
    assert len(cut) - (3 if task.pair else 2) + cut.num_truncated == texts
    whole = replace(task, stride=37).encode(TextExample("1", first, second), tokenizer)
    assert sum(feature.num_truncated for feature in whole) == 0
    last = whole[-1].offsets
    assert last is not None
    assert len(first) - 1 in last[:, 1], "the last window holds the last word"
    one = _outputs(task, task.examples("dev")[3])
    answers = [task.decode(TextExample("1", ""), [], [one] * count) for count in (1, 7)]
    assert answers[0].label == pytest.approx(answers[1].label)


def test_weights_reach_the_loss(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    if not task.labels:
        return
    features = [feature for example in task.examples("dev") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    sums = []
    for each in (task, task.weighted(",".join(f"{label}=3" for label in task.labels))):
        torch.manual_seed(13)
        encoder = Bert(BertConfig(vocab_size=99, hidden_size=13, num_layers=1, num_heads=1, intermediate_size=7))
        model = Model(encoder, each.objectives(encoder)).eval()
        (term,) = model.loss(model(batch), batch).values()
        assert term.count == ROWS
        sums.append(term.sum)
    torch.testing.assert_close(sums[1], 3 * sums[0])


def test_gradients_reach_every_parameter_of_the_head(task: TextClassificationTask, tokenizer: Tokenizer) -> None:
    config = BertConfig(vocab_size=99, hidden_size=13, num_layers=1, num_heads=1, intermediate_size=7)
    encoder = Bert(config)
    model = Model(encoder, task.objectives(encoder))
    features = [feature for example in task.examples("dev") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    (term,) = model.loss(model(batch), batch).values()
    term.sum.backward()  # type: ignore[no-untyped-call]
    assert term.count == ROWS
    for parameter in model.objectives.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_the_record_is_json_and_comes_back_equal(task: TextClassificationTask) -> None:
    assert from_record(json.loads(json.dumps(task.record()))) == task


def test_a_short_row_is_an_error_with_file_and_line(task: TextClassificationTask) -> None:
    for split, where in task.files.splits.items():
        assert where.form is not None
        assert task.files.folder is not None
        path = task.files.folder / where.files[0]
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([*lines[:6], "cut off", *lines[6:]]), encoding="utf-8")
        if where.form.skips_broken:
            assert len(task.examples(split)) == ROWS
            continue
        with pytest.raises(BertkitError, match=rf"{where.files[0]}, line 7: 1 cells, but \d+ columns"):
            task.examples(split)


def test_an_unknown_label_is_an_error_with_file_and_line(task: TextClassificationTask) -> None:
    assert task.files.folder is not None
    path = task.files.folder / task.files.splits["dev"].files[0]
    text = path.read_text(encoding="utf-8")
    head = text.splitlines()[5]
    cells = ["no-label" if cell == _label_cell(task, _number_in(head)) else cell for cell in head.split("\t")]
    path.write_text(text.replace(head, "\t".join(cells)), encoding="utf-8")
    with pytest.raises(BertkitError, match=rf"{path.name}, line 6: .*no-label"):
        task.examples("dev")


def _number_in(line: str) -> int:
    return next(number for number in _numbers(line) if number < ROWS)


def _numbers(line: str) -> Iterator[int]:
    for cell in line.split("\t"):
        if cell.startswith('"'):
            yield int(cell.split()[-1])


def test_without_its_folder_it_names_both_ways_to_give_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTKIT_DATA", raising=False)
    with pytest.raises(BertkitError, match=r"--data DIR, or set BERTKIT_DATA to the folder that holds glue/"):
        TASKS[name].examples("dev")


def test_the_folder_is_found_by_the_environment(
    task: TextClassificationTask, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data" / TASKS[name].files.home
    home.parent.mkdir(parents=True)
    home.symlink_to(tmp_path)
    monkeypatch.setenv("BERTKIT_DATA", str(tmp_path / "data"))
    assert TASKS[name].examples("dev") == task.examples("dev")


def test_answers_are_spelt_as_the_files_spell_them(task: TextClassificationTask) -> None:
    for example in task.examples("dev"):
        assert example.label is not None
        cell = task.spell(Prediction(example.label))
        expected = _label_cell(task, int(example.first.split()[-1]))
        assert cell == (expected if task.labels else f"{float(expected):.3f}")
