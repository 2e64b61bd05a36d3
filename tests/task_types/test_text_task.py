"""What every task on texts must do; a new one in ``tasks/`` is covered without an edit here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.tasks.example_files import ROWS, bind_to_small_files, label_cell

from bertkit import lookup
from bertkit.batch import IGNORE
from bertkit.config.settings import apply, parse_settings
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.scores import is_defined
from bertkit.task_types import (
    Columns,
    Prediction,
    RegressionTask,
    Split,
    TaskFiles,
    TextClassificationTask,
    TextExample,
    TextTask,
)
from bertkit.task_types.class_weights import Weightable

TASKS: dict[str, TextTask] = lookup.values("tasks", TextTask)


@pytest.fixture(params=TASKS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def task(name: str, tmp_path: Path) -> TextTask:
    """The task with small files of its own layout."""
    bound = bind_to_small_files(TASKS[name], tmp_path)
    assert isinstance(bound, TextTask)
    return bound


def _outputs(task: TextTask, example: TextExample) -> dict[str, np.ndarray[Any, Any]]:
    """What a model would say that is sure of the gold answer."""
    if not isinstance(task, RegressionTask):
        return {"logits": np.array([9.0 if label == example.label else -3.0 for label in task.labels])}
    assert isinstance(example.label, float)
    return {"value": np.array((example.label - task.numbers.origin) / task.numbers.unit)}


def test_it_reads_every_split_in_order(task: TextTask) -> None:
    for split in task.files.splits:
        examples = task.examples(split)
        assert [int(example.first.split()[-1]) for example in examples] == list(range(ROWS))
        assert all((example.second is not None) == task.pair for example in examples)
        assert all((example.label is None) == split.startswith("test") for example in examples)


def test_gold_answers_score_perfectly(task: TextTask, tokenizer: Tokenizer) -> None:
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


def test_a_constant_answer_scores_a_number(task: TextTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("dev")
    same = [_outputs(task, examples[0])] * ROWS
    predictions = [task.decode(example, [], [output]) for example, output in zip(examples, same, strict=True)]
    scores = task.score(examples, predictions)
    assert all(-1.0 <= score < 1.0 or not is_defined(score) for score in scores.values())


def test_unlabelled_examples_are_encoded_and_not_scored(task: TextTask, tokenizer: Tokenizer) -> None:
    examples = [replace(example, label=None) for example in task.examples("dev")]
    features = [feature for example in examples for feature in task.encode(example, tokenizer)]
    for feature in features:
        assert list(feature.labels.values()) == [IGNORE]
    with pytest.raises(BertkitError, match="13 of 13 examples have no label"):
        task.score(examples, [])


def test_tokens_that_do_not_fit_are_counted_or_read_in_windows(task: TextTask, tokenizer: Tokenizer) -> None:
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


def test_weights_reach_the_loss(task: TextTask, tokenizer: Tokenizer) -> None:
    if isinstance(task, RegressionTask):
        return
    features = [feature for example in task.examples("dev") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    sums = []
    assert isinstance(task, Weightable)
    for each in (task, task.weighted(",".join(f"{label}=3" for label in task.labels))):
        torch.manual_seed(13)
        encoder = Bert(BertConfig(vocab_size=99, hidden_size=13, num_layers=1, num_heads=1, intermediate_size=7))
        model = Model(encoder, each.objectives(encoder)).eval()
        (term,) = model.loss(model(batch), batch).values()
        assert term.count == ROWS
        sums.append(term.sum)
    torch.testing.assert_close(sums[1], 3 * sums[0])


def test_a_short_row_is_an_error_with_file_and_line(task: TextTask) -> None:
    for split, where in task.files.splits.items():
        assert task.files.folder is not None
        path = task.files.folder / where.files[0]
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([*lines[:6], "cut off", *lines[6:]]), encoding="utf-8")
        if where.form is not None and where.form.skips_broken:
            assert len(task.examples(split)) == ROWS
            continue
        with pytest.raises(BertkitError, match=rf"{where.files[0]}, line 7: 1 cell, but \d+ columns"):
            task.examples(split)


def test_an_unknown_label_is_an_error_with_file_and_line(task: TextTask) -> None:
    assert task.files.folder is not None
    where = task.files.splits["dev"]
    path = task.files.folder / where.files[0]
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 5 if where.form is not None and where.form.names else 4
    old, new = label_cell(task, number), "no-label"
    lines[5] = "\t".join(new if cell == old else cell for cell in lines[5].split("\t"))
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BertkitError, match=rf"{path.name}, line 6: .*no-label"):
        task.examples("dev")


def test_heads_with_every_pooling_learn_from_every_example(task: TextTask, tokenizer: Tokenizer) -> None:
    features = [feature for example in task.examples("dev") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=13, num_layers=1, num_heads=1, intermediate_size=7))
    for settings in (["pooling=mean"], ["pooling=max"], ["pooling=mean", "pair_head=true"]):
        if len(settings) > 1 and not task.pair:
            with pytest.raises(BertkitError, match=f"pair_head is for pairs of texts; an example of {task.name} is"):
                apply(task, parse_settings(settings))
            continue
        model = Model(encoder, apply(task, parse_settings(settings)).objectives(encoder))
        (term,) = model.loss(model(batch), batch).values()
        assert term.count == ROWS
        term.sum.backward()  # type: ignore[no-untyped-call]
        assert all(weight.grad is not None for weight in model.objectives.parameters())
    if task.pair:
        with pytest.raises(BertkitError, match="pair_head reads the mean or maximum over all tokens"):
            replace(task, pair_head=True)


def test_predictions_are_spelled_as_in_the_files(task: TextTask) -> None:
    for example in task.examples("dev"):
        assert example.label is not None
        cell = task.spell(Prediction(example.label))
        expected = label_cell(task, int(example.first.split()[-1]))
        assert cell == expected


def test_two_columns_of_texts_need_a_task_on_pairs() -> None:
    columns = Columns(first="premise", second="claim", label="follows")
    files = TaskFiles(splits={"train": Split(files=("train.tsv",), columns=columns)})
    with pytest.raises(BertkitError, match="entail reads two texts, the columns premise and claim: set pair=True in"):
        TextClassificationTask(name="entail", metric="accuracy", labels=("no", "yes"), files=files)
