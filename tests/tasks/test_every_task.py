"""What every task in ``tasks/`` must do. A new module in ``tasks`` is covered without an edit here."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tasks.example_files import ROWS, bind_to_small_files

from bertkit import lookup
from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.finetuning.defaults import small_head_settings
from bertkit.inference.predict import predict
from bertkit.inference.prediction_formats import find_writer
from bertkit.model import Model
from bertkit.task_types import (
    Choice,
    ChoiceExample,
    FileTask,
    Prediction,
    SpanExample,
    SpanPrediction,
    TagExample,
    TagPrediction,
    from_record,
)

TASKS: dict[str, FileTask] = lookup.values("tasks", FileTask)


@pytest.fixture(params=TASKS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def task(name: str, tmp_path: Path) -> FileTask:
    """The task with small files of its own layout."""
    return bind_to_small_files(TASKS[name], tmp_path)


@pytest.fixture
def model(task: FileTask) -> Model:
    torch.manual_seed(13)
    config = BertConfig(
        vocab_size=99, hidden_size=12, num_layers=1, num_heads=1, intermediate_size=7, max_positions=task.max_length
    )
    encoder = Bert(config)
    return Model(encoder, task.objectives(encoder)).eval()


@pytest.mark.parametrize("heads", ["published", "small"])
def test_the_host_never_waits_for_the_device_in_a_step(
    heads: str, task: FileTask, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors on the device "meta" have no values, and do not mix with those of the host, as on a GPU."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # not implemented for "meta"
    if heads == "small":
        prefix, settings = "task.", small_head_settings(task)
        fields: dict[str, Any] = {path.removeprefix(prefix): settings[path] for path in settings if prefix in path}
        task = replace(task, **fields)
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=12, num_layers=2, num_heads=1, intermediate_size=7))
    meta = torch.device("meta")
    model = Model(encoder, task.objectives(encoder)).to(meta)
    split = "train" if "train" in task.files.splits else "dev"
    features = [feature for example in task.examples(split) for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=0).to(meta)
    outputs = model(batch)
    torch.autograd.backward([term.sum for term in model.loss(outputs, batch).values()])
    assert all(weight.grad is not None for weight in model.objectives.parameters())


def test_the_name_is_what_the_user_types(name: str) -> None:
    assert TASKS[name].name == name


def test_it_describes_itself(task: FileTask) -> None:
    assert task.about.endswith((".", "?"))
    assert task.labels == tuple(dict.fromkeys(task.labels))
    assert task.pipeline_tag
    assert task.answer_columns.columns[0] == "id"
    assert task.answer_columns.answer in task.answer_columns.columns


def test_train_and_dev_have_gold_answers_and_all_rows_are_read(task: FileTask) -> None:
    for split in task.files.splits:
        examples = task.examples(split)
        assert len(examples) == ROWS
        assert len({example.id for example in examples}) == ROWS
        if not split.startswith("test"):
            assert all(example.label is not None for example in examples)


def test_reading_twice_gives_equal_examples(task: FileTask) -> None:
    assert task.examples("dev") == task.examples("dev")


def test_gold_answers_score_perfectly(task: FileTask) -> None:
    examples = task.examples("dev")
    scores = task.score(examples, [_gold_prediction(example) for example in examples])
    assert task.metric in scores
    assert all(score == pytest.approx(1.0) for score in scores.values())


def _gold_prediction(example: Any) -> Any:
    """The prediction that is the gold answer, of the type that the example's task predicts."""
    if isinstance(example, SpanExample):
        return SpanPrediction(example.label or "")
    if isinstance(example, TagExample):
        return TagPrediction(example.label or (), (), ())
    if isinstance(example, ChoiceExample):
        return Choice(example.label or 0, "", ())
    return Prediction("" if example.label is None else example.label)


def test_predictions_of_an_untrained_model_can_be_scored_described_and_reported(
    task: FileTask, model: Model, tokenizer: Tokenizer
) -> None:
    examples = task.examples("dev")
    predictions = predict(model, task, examples, tokenizer, precision="float32")
    calibrated, decided = task.calibrate(examples, predictions)
    assert -1.0 <= calibrated.score(examples, decided)[task.metric] <= 1.0
    for example, prediction in zip(examples, predictions, strict=True):
        record = json.loads(json.dumps(task.describe(example, prediction)))
        assert record["id"] == example.id
        assert task.answer_columns.answer in record
        assert set(task.answer_columns.files) <= record.keys()
        assert task.report(example, prediction).error >= 0


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".txt"])
def test_predictions_can_be_written_in_every_format(
    suffix: str, task: FileTask, model: Model, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    examples = task.examples("dev")[:3]
    predictions = predict(model, task, examples, tokenizer, precision="float32")
    described = [task.describe(*each) for each in zip(examples, predictions, strict=True)]
    output = tmp_path / f"out{suffix}"
    find_writer(output)(described, output, task.answer_columns)
    assert output.read_text(encoding="utf-8").strip()


def test_unlabelled_examples_are_encoded_and_not_scored(task: FileTask, tokenizer: Tokenizer) -> None:
    examples = [_without_label(example) for example in task.examples("dev")]
    for example in examples:
        for feature in task.encode(example, tokenizer):
            labels = torch.cat([torch.as_tensor(label).float().ravel() for label in feature.labels.values()])
            assert labels.numel()
            assert IGNORE in labels
    with pytest.raises(BertkitError, match="cannot be scored"):
        task.score(examples, [_gold_prediction(example) for example in examples])


def _without_label(example: Any) -> Any:
    return replace(example, **{"answers" if hasattr(example, "answers") else "label": None})


def test_features_fit_the_length(task: FileTask, tokenizer: Tokenizer) -> None:
    short = replace(task, max_length=16)
    for example in short.examples("dev"):
        assert all(len(feature) <= 16 for feature in short.encode(example, tokenizer))


def test_encoding_together_is_encoding_one_by_one(task: FileTask, tokenizer: Tokenizer) -> None:
    for example, features in task.encode_all(task.examples("dev"), tokenizer):
        alone = task.encode(example, tokenizer)
        assert [feature.input_ids.tolist() for feature in features] == [each.input_ids.tolist() for each in alone]


def test_gradients_reach_every_parameter_of_the_head(task: FileTask, model: Model, tokenizer: Tokenizer) -> None:
    features = [feature for example in task.examples("dev") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=tokenizer.pad_id)
    (term,) = model.loss(model(batch), batch).values()
    term.sum.backward()  # type: ignore[no-untyped-call]
    assert term.count > 0
    for parameter in model.objectives.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_the_record_is_json_and_comes_back_equal(task: FileTask) -> None:
    assert from_record(json.loads(json.dumps(task.record()))) == task


def test_a_length_without_room_for_a_token_is_refused(task: FileTask) -> None:
    with pytest.raises(BertkitError, match="max_length is 2"):
        replace(task, max_length=2)


def test_without_its_folder_the_error_names_both_ways_to_give_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTKIT_DATA", raising=False)
    home = TASKS[name].files.home
    with pytest.raises(BertkitError, match=rf"--data DIR, or set BERTKIT_DATA to the folder that holds {home}"):
        TASKS[name].examples("dev")


def test_the_folder_is_found_by_the_environment(
    task: FileTask, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "data" / TASKS[name].files.home
    home.parent.mkdir(parents=True)
    home.symlink_to(tmp_path)
    monkeypatch.setenv("BERTKIT_DATA", str(tmp_path / "data"))
    assert TASKS[name].examples("dev") == task.examples("dev")
