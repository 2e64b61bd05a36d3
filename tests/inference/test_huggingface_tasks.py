"""The task of a model that was not made by bertkit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.checkpoint.model_folder import METADATA
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference.huggingface_tasks import infer_task
from bertkit.inference.pipeline import Pipeline, load
from bertkit.model import Model
from bertkit.storage.atomic import read_json, write_json
from bertkit.task_types import (
    FileTask,
    MultiLabelTask,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    RegressionTask,
    TaggingTask,
    TextClassificationTask,
)
from bertkit.text.wordpiece import WordPiece


def save(folder: Path, encoder: Bert, task: FileTask, tokenizer: WordPiece) -> Pipeline:
    model = Model(encoder, task.objectives(encoder))
    save_model(folder / "model", model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    return load(folder)


def test_a_classifier_not_made_by_bertkit_has_the_labels_of_its_config(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    expected = save(tmp_path, encoder, task, tokenizer).classify("the river ran")
    (tmp_path / "model" / METADATA).unlink()
    found = load(tmp_path / "model").classify("the river ran")
    assert found.scores == pytest.approx(expected.scores)


def test_a_folder_that_names_no_architecture_is_told_by_its_weights_or_says_what_to_add(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    def save_without_architecture(task: FileTask, name: str) -> Path:
        expected = save(tmp_path / name, encoder, task, tokenizer)
        folder = expected.folder
        (folder / METADATA).unlink()
        config = read_json(folder / "config.json")
        del config["architectures"]
        write_json(folder / "config.json", config)
        return folder

    assert load(save_without_architecture(task, "classes")).task.labels == task.labels
    folder = save_without_architecture(RegressionTask(name="n", metric="pearson"), "number")
    with pytest.raises(BertkitError, match="names no architecture, and the weights fit BertForSequenceClassification"):
        load(folder).predict(["the river ran"])


def test_a_classifier_that_reads_from_left_to_right_is_refused(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    """transformers classifies by the first token, which sees no other; ours reads the last."""
    folder = save(tmp_path, encoder, task, tokenizer).folder
    (folder / METADATA).unlink()
    write_json(folder / "config.json", read_json(folder / "config.json") | {"is_decoder": True})
    with pytest.raises(BertkitError, match='"is_decoder": true and a head that reads the first token'):
        load(folder).classify("the river ran")
    assert repr(load(folder)) == f"Pipeline({folder}: its head cannot be used; float32 on cpu)"


@pytest.mark.parametrize(
    ("head", "metadata", "kind", "max_length"),
    [
        ("ForQuestionAnswering", {}, QuestionAnsweringTask, 384),
        ("ForMultipleChoice", {}, MultipleChoiceTask, 512),
        ("ForTokenClassification", {"labels": ["O", "B-X"]}, TaggingTask, 512),
        ("ForSequenceClassification", {"labels": ["a", "b"], "several_labels": True}, MultiLabelTask, 512),
        ("ForSequenceClassification", {"labels": ["score"]}, RegressionTask, 512),
        ("ForSequenceClassification", {"labels": ["a", "b"]}, TextClassificationTask, 512),
    ],
)
@pytest.mark.parametrize("name", ["Bert", "Roberta"])
def test_the_architecture_says_what_the_task_is(
    name: str, head: str, metadata: dict[str, object], kind: type[FileTask], max_length: int
) -> None:
    task = infer_task("m", {"architectures": [name + head], **metadata}, positions=512)
    assert type(task) is kind
    assert task is not None and (task.name, task.max_length) == ("m", max_length)
    if isinstance(task, RegressionTask | TextClassificationTask):
        numbers, classes = ("pearson", "spearman", "mean_absolute_error"), ("accuracy", "macro_f1", "matthews")
        assert (task.metric, *task.also[1:]) == task.also == (numbers if len(task.labels) < 2 else classes)


def test_unnamed_labels_are_those_of_hugging_face() -> None:
    task = infer_task("m", {"architectures": ["BertForSequenceClassification"]}, positions=77)
    assert task is not None and task.labels == ("LABEL_0", "LABEL_1")


def test_a_pre_trained_model_has_no_task() -> None:
    assert infer_task("m", {"architectures": ["BertForMaskedLM"]}, positions=77) is None
