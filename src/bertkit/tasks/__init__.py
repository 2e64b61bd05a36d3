"""Tasks: labelled data and how it is asked and marked. The records that tasks are made of are named here."""

from collections.abc import Mapping
from typing import Any

from bertkit.errors import data_error
from bertkit.tasks._choices import Choice, ChoiceExample, ChoiceTask, make_example
from bertkit.tasks._labels import write_labels
from bertkit.tasks._marks import Mark
from bertkit.tasks._several import LabelsTask
from bertkit.tasks._spans import Passage, SpanPrediction, SpanTask
from bertkit.tasks._splits import Columns, Split, TaskFiles
from bertkit.tasks._squad_files import SpanExample
from bertkit.tasks._tags import NamedEntity, TagExample, TagPrediction, TagTask
from bertkit.tasks._task import FileTask
from bertkit.tasks._text import Prediction, TextExample, TextTask

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
