"""The task of a fine-tuned model in Hugging Face's format, from the architecture that its ``config.json`` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.errors import data_error
from bertkit.task_types import (
    FileTask,
    MultiLabelTask,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    RegressionTask,
    TaggingTask,
    TextClassificationTask,
    TextTask,
    from_record,
    regression,
    text_classification,
)

_UNNAMED_LABELS = ("LABEL_0", "LABEL_1")
"""The labels of a ``config.json`` without ``id2label``: Hugging Face does not write its default of two labels."""

_LABELS_OF_PAIRS = {"entailment", "contradiction", "not_entailment", "equivalent", "duplicate"}
"""Classes that only two texts can have: a ``config.json`` does not say whether a classifier is for pairs."""

_LONGEST_CONTEXT = 384
"""Tokens of a window of a context, as in google-research/bert ``run_squad.py``; other inputs fill all positions."""


def task_of_folder(folder: ModelFolder) -> FileTask | None:
    """The task in the metadata of a folder, or that of the architecture that its ``config.json`` names.

    A data error for a BERT of another library that reads from left to right and classifies by its first token.
    """
    if "task" in folder.metadata:
        return from_record(folder.metadata["task"])
    task = infer_task(folder.path.name, folder.metadata, positions=folder.positions or 0)
    if isinstance(task, TextTask) and getattr(folder.config, "causal", False):
        raise data_error(
            f'{folder.path} has "is_decoder": true and a head that reads the first token, which sees no other one. '
            "A classifier of this kind is not supported."
        )
    return task


def infer_task(name: str, metadata: Mapping[str, Any], *, positions: int) -> FileTask | None:
    """The task ``name`` for a model that reads up to ``positions`` tokens; None if its architecture has no task head.

    ``metadata`` has ``architectures``, ``labels``, and ``several_labels`` for a multi-label classifier.
    """
    labels = tuple(metadata.get("labels", ())) or _UNNAMED_LABELS
    architectures = metadata.get("architectures", ())
    match ["For" + architecture.partition("For")[2] for architecture in architectures]:
        case ["ForQuestionAnswering"]:
            return QuestionAnsweringTask(name=name, max_length=min(_LONGEST_CONTEXT, positions))
        case ["ForMultipleChoice"]:
            return MultipleChoiceTask(name=name, max_length=positions)
        case ["ForTokenClassification"]:
            return TaggingTask(name=name, labels=labels, max_length=positions)
        case ["ForSequenceClassification"] if metadata.get("several_labels"):
            return MultiLabelTask(name=name, labels=labels, max_length=positions)
        case ["ForSequenceClassification"] if len(labels) == 1:
            scores = regression.USUAL_SCORES
            return RegressionTask(name=name, metric=scores[0], also=scores, max_length=positions)
        case ["ForSequenceClassification"]:
            pair = not _LABELS_OF_PAIRS.isdisjoint(map(str.casefold, labels))
            return TextClassificationTask(
                name=name,
                metric=text_classification.USUAL_SCORES[0],
                also=text_classification.USUAL_SCORES,
                labels=labels,
                max_length=positions,
                pair=pair,
            )
    return None
