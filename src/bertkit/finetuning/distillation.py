"""Fine-tuning with a teacher: what a larger fine-tuned model predicts for the training texts, and for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Feature
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import LayerStack
from bertkit.errors import usage_error
from bertkit.finetuning.layer_matching import MatchedLayers, predict_layer_means
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.soft_targets import SoftTargets
from bertkit.inference.pipeline import Pipeline, load, task_for
from bertkit.model import Model
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.report.progress import Progress
from bertkit.task_types import TextClassificationTask, TextExample
from bertkit.user_tables.input_columns import choose_columns

Encoded = list[list[Feature]]
"""The features of every example."""


def add_soft_targets(
    run: FinetuneRun,
    examples: Sequence[TextExample],
    encoded: Encoded,
    student: ModelFolder,
    progress: Progress,
) -> Encoded:
    """``encoded`` and the encoded texts of ``run.unlabelled``, with the teacher's probabilities as a further label.

    ``student`` is the folder of ``run.model``. The teacher reads the texts with its own tokenizer. Texts without a
    label have IGNORE in its place.
    """
    assert run.teacher is not None
    task = _require_classes(run)
    teacher = load(run.teacher)
    read = _task_of_teacher(run, teacher, task)
    if run.layer_weight and any(each.both_orders or each.stride for each in (task, read)):
        raise usage_error("layer_weight matches one row per text: it takes no task.both_orders and no task.stride.")
    layers = _count_layers(run, student, teacher.models[0]) if run.layer_weight else 0
    new = _read_unlabelled(run, task, progress)
    others = [features for _, features in task.encode_all(new, student.tokenizer)]
    texts = [*examples, *new]
    progress.start("predicting with the teacher", len(texts), "text")
    taught = []
    for features, prediction in zip([*encoded, *others], teacher.stream(texts, task=read), strict=True):
        target = np.array([prediction.scores[label] for label in task.labels], dtype=np.float32)
        taught.append(_add_label(features, SoftTargets.label, target))
        progress.advance(len(taught))
    progress.finish()
    if run.layer_weight:
        means = predict_layer_means(teacher, read, texts, layers)
        taught = [_add_label(*each) for each in zip(taught, repeat(MatchedLayers.label), means)]
    return taught


def _add_label(features: Sequence[Feature], name: str, value: NDArray[np.floating]) -> list[Feature]:
    return [replace(each, labels={**each.labels, name: value}) for each in features]


def _count_layers(run: FinetuneRun, student: ModelFolder, teacher: ModelFolder) -> int:
    """The layers of the student, each of which is matched with one of the teacher."""
    for path, folder in ((run.model, student), (run.teacher, teacher)):
        if not issubclass(folder.spec.encoder, LayerStack):
            raise usage_error(f"layer_weight is for stacks of similar layers, such as BERT; {path} is none.")
    return int(student.config.num_layers)


def add_teacher(model: Model, run: FinetuneRun) -> Model:
    """The same modules with the loss against the teacher in addition; ``model`` itself is not changed."""
    (head,) = model.heads.values()
    assert isinstance(head, SequenceClassification)
    soft = SoftTargets(head, temperature=run.temperature)
    soft.weight = run.teacher_weight
    matched = {MatchedLayers.label: MatchedLayers(run.layer_weight)} if run.layer_weight else {}
    return Model(model.encoder, {**model.heads, SoftTargets.label: soft, **matched})


def _require_classes(run: FinetuneRun) -> TextClassificationTask:
    if not isinstance(run.task, TextClassificationTask):
        raise usage_error(f"teacher is for tasks with one class per text; {run.task.name} is another kind.")
    if run.lm_loss_weight:
        raise usage_error("teacher and lm_loss_weight cannot be combined: leave one of them out.")
    return run.task


def _task_of_teacher(run: FinetuneRun, teacher: Pipeline, task: TextClassificationTask) -> TextClassificationTask:
    """How the teacher reads the texts; a usage error if it has other classes, or reads pairs where they are none."""
    read = task_for(teacher, pair=task.pair)
    taught = read.labels if isinstance(read, TextClassificationTask) else ()
    if not isinstance(read, TextClassificationTask) or set(taught) != set(task.labels):
        found = f"the classes {', '.join(taught)}" if taught else "no classes"
        raise usage_error(f"{run.teacher} predicts {found}; {task.name} has {', '.join(task.labels)}.")
    if read.pair != task.pair:
        kinds = {True: "pairs of texts", False: "single texts"}
        raise usage_error(f"{run.teacher} reads {kinds[read.pair]}; {task.name} has {kinds[task.pair]}.")
    return read


def _read_unlabelled(run: FinetuneRun, task: TextClassificationTask, progress: Progress) -> list[TextExample]:
    """The texts of ``run.unlabelled``; labels, if it has any, are not read."""
    if run.unlabelled is None:
        return []
    own, sentence = choose_columns(task, run.unlabelled)
    found = [TextExample(example.id, example.first, example.second) for example in own.reader.read(run.unlabelled)]
    progress.say(f"{len(found):,} texts without a label{f'; {sentence}' if sentence else ''}")
    return found
