"""Task types: how examples of one kind are read, encoded, decoded and scored."""

from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_files.squad_files import SpanExample
from bertkit.task_types.base import (
    AnswerColumns,
    FileTask,
    describe_truncation,
    have_same_heads,
    same_answers,
    type_name,
)
from bertkit.task_types.choice_reader import ChoiceExample, make_example
from bertkit.task_types.example_reports import ExampleReport
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.multiple_choice import Choice, MultipleChoiceTask
from bertkit.task_types.question_answering import QuestionAnsweringTask
from bertkit.task_types.reader import Reader
from bertkit.task_types.records import from_record
from bertkit.task_types.regression import RegressionTask
from bertkit.task_types.similarity import SimilarityTask
from bertkit.task_types.span_decoder import AnswerSpan, SpanPrediction
from bertkit.task_types.tag_reader import TagExample
from bertkit.task_types.tagging import NamedEntity, TaggingTask, TagPrediction
from bertkit.task_types.text_classification import TextClassificationTask
from bertkit.task_types.text_reader import TextExample, TextReader
from bertkit.task_types.text_task import Prediction, TextTask

__all__ = [
    "AnswerColumns",
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
    "Reader",
    "RegressionTask",
    "SimilarityTask",
    "SpanExample",
    "SpanPrediction",
    "Split",
    "TagExample",
    "TagPrediction",
    "TaggingTask",
    "TaskFiles",
    "TextClassificationTask",
    "TextExample",
    "TextReader",
    "TextTask",
    "describe_truncation",
    "from_record",
    "have_same_heads",
    "make_example",
    "same_answers",
    "type_name",
]
