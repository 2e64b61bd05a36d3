"""A task from the record in a model folder."""

from __future__ import annotations

from collections.abc import Mapping

from bertkit import lookup
from bertkit.config.records import from_plain
from bertkit.errors import data_error
from bertkit.task_types.base import FileTask, type_name
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.multiple_choice import MultipleChoiceTask
from bertkit.task_types.question_answering import QuestionAnsweringTask
from bertkit.task_types.regression import RegressionTask
from bertkit.task_types.similarity import SimilarityTask
from bertkit.task_types.tagging import TaggingTask
from bertkit.task_types.text_classification import TextClassificationTask

TASK_TYPES: Mapping[str, type[FileTask]] = {
    type_name(kind): kind
    for kind in (
        TextClassificationTask,
        RegressionTask,
        SimilarityTask,
        MultiLabelTask,
        QuestionAnsweringTask,
        MultipleChoiceTask,
        TaggingTask,
    )
}


def from_record(record: Mapping[str, object]) -> FileTask:
    """The task that was saved with ``record()``; its ``type`` is one of bertkit's, or a class of the user's module."""
    name = str(record.get("type"))
    fields = {field: value for field, value in record.items() if field != "type"}
    return from_plain(_find_type(name), fields, source="the task of the model")


def _find_type(name: str) -> type[FileTask]:
    if ":" not in name:
        if name not in TASK_TYPES:
            raise data_error(f'no type of task is called "{name}". There are: {", ".join(TASK_TYPES)}.')
        return TASK_TYPES[name]
    with lookup.names_from_a_file():
        kind = lookup.find_outside(name, type)
    if not issubclass(kind, FileTask):
        raise data_error(f"{name} is not a class of tasks.")
    return kind
