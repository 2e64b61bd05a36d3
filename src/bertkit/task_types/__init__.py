"""Task types: how examples of one kind are read, encoded, decoded and scored."""

from collections.abc import Mapping
from typing import Any

from bertkit.errors import data_error
from bertkit.task_types.base import FileTask
from bertkit.task_types.example_reports import Mark
from bertkit.task_types.labels import write_labels
from bertkit.task_types.multi_label import LabelsTask
from bertkit.task_types.multiple_choice import Choice, ChoiceExample, ChoiceTask, make_example
from bertkit.task_types.question_answering import Passage, SpanPrediction, SpanTask
from bertkit.task_types.squad_files import SpanExample
from bertkit.task_types.tagging import NamedEntity, TagExample, TagPrediction, TagTask
from bertkit.task_types.task_files import Columns, Split, TaskFiles
from bertkit.task_types.text_classification import Prediction, TextExample, TextTask

__all__ = [
    "Choice",
    "ChoiceExample",
    "ChoiceTask",
    "Columns",
    "FileTask",
    "LabelsTask",
    "Mark",
    "NamedEntity",
    "Passage",
    "Prediction",
    "SpanExample",
    "SpanPrediction",
    "SpanTask",
    "Split",
    "TagExample",
    "TagPrediction",
    "TagTask",
    "TaskFiles",
    "TextExample",
    "TextTask",
    "from_record",
    "make_example",
    "write_labels",
]

_SHAPES: Mapping[str, type[FileTask]] = {
    kind.shape: kind for kind in (TextTask, LabelsTask, SpanTask, ChoiceTask, TagTask)
}


def from_record(record: Mapping[str, Any]) -> FileTask:
    """The task that was written down with ``record()``; an unknown shape is an error."""
    shape = str(record.get("shape"))
    if shape not in _SHAPES:
        raise data_error(f'no task has the shape "{shape}". There are: {", ".join(_SHAPES)}.')
    return _SHAPES[shape].from_record(record)
