"""Task types: how examples of one kind are read, encoded, decoded and scored."""

from collections.abc import Mapping
from typing import Any

from bertkit.errors import data_error
from bertkit.task_types.base import FileTask
from bertkit.task_types.example_reports import ExampleReport
from bertkit.task_types.labels import write_labels
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.multiple_choice import Choice, ChoiceExample, MultipleChoiceTask, make_example
from bertkit.task_types.question_answering import AnswerSpan, QuestionAnsweringTask, SpanPrediction
from bertkit.task_types.squad_files import SpanExample
from bertkit.task_types.tagging import NamedEntity, TagExample, TaggingTask, TagPrediction
from bertkit.task_types.task_files import Columns, Split, TaskFiles
from bertkit.task_types.text_classification import Prediction, TextClassificationTask, TextExample

__all__ = [
    "AnswerSpan",
    "Choice",
    "ChoiceExample",
    "Columns",
    "ExampleReport",
    "FileTask",
    "MultiLabelTask",
    "MultipleChoiceTask",
    "NamedEntity",
    "Prediction",
    "QuestionAnsweringTask",
    "SpanExample",
    "SpanPrediction",
    "Split",
    "TagExample",
    "TagPrediction",
    "TaggingTask",
    "TaskFiles",
    "TextClassificationTask",
    "TextExample",
    "from_record",
    "make_example",
    "write_labels",
]

_SHAPES: Mapping[str, type[FileTask]] = {
    kind.shape: kind
    for kind in (TextClassificationTask, MultiLabelTask, QuestionAnsweringTask, MultipleChoiceTask, TaggingTask)
}


def from_record(record: Mapping[str, Any]) -> FileTask:
    """The task that was written down with ``record()``; an unknown shape is an error."""
    shape = str(record.get("shape"))
    if shape not in _SHAPES:
        raise data_error(f'no task has the shape "{shape}". There are: {", ".join(_SHAPES)}.')
    return _SHAPES[shape].from_record(record)
