"""Settings of a fine-tuning: those published for each model, by profile name, and those measured for small models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from torch import nn

from bertkit.checkpoint.model_folder import ModelFolder, has_pooler
from bertkit.contracts import LayerStack
from bertkit.encoder_types.building import sketch_encoder
from bertkit.encoder_types.settings import context_of
from bertkit.errors import usage_error
from bertkit.finetuning.starting_point import trained_task
from bertkit.options.finetuning import FinetuneProfile
from bertkit.task_types import (
    FileTask,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    RegressionTask,
    SimilarityTask,
    TaggingTask,
    TextTask,
    same_answers,
)
from bertkit.task_types.regression import NUMBERS_OF_FILES
from bertkit.tasks.glue import cola, mrpc, qqp, rte, stsb

Value = TypeVar("Value")

_GPT: Mapping[str, object] = {
    "epochs": 3,
    "batch_size": 32,
    "lm_loss_weight": 0.5,
    "optimizer.lr": 6.25e-5,
    "optimizer.eps": 1e-8,
    "schedule.warmup": 0.002,
    "schedule.decay": "bert",  # counted from step 0, as in their ``warmup_linear``
}
"""Radford et al. 2018, section 4.1, and openai/finetune-transformer-lm ``train.py``. Weight decay of
0.01, clipping at 1 and Adam with bias correction are the defaults here too."""


_ROBERTA: Mapping[str, object] = {
    "epochs": 10,
    "batch_size": 32,
    "optimizer.lr": 1e-5,
    "optimizer.beta2": 0.98,
    "optimizer.weight_decay": 0.1,
    "optimizer.clip_norm": 0.0,
    "schedule.warmup": 0.06,
}
"""fairseq ``examples/roberta/README.glue.md``."""


_WORD_MODEL: Mapping[str, object] = {"optimizer.weight_decay": 0.0, "optimizer.eps": 1e-8, "schedule.warmup": 0.0}
"""Settings that all word models share. The published models lowered the rate when dev stopped improving."""


_BIDAF: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 20,
    "batch_size": 40,
    "optimizer.lr": 1e-3,
    "optimizer.beta2": 0.9,
    "optimizer.clip_norm": 5.0,
}
"""allennlp-models ``training_config/rc/bidaf_elmo.jsonnet``."""


_BILSTM_ATTENTION: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 20,
    "batch_size": 128,
    "task.max_length": 83,  # two texts of 40 words; the source cuts each text of a pair to 40
    "optimizer.lr": 1e-4,
    "optimizer.clip_norm": 5.0,
}
"""nyu-mll/GLUE-baselines ``src/main.py`` and ``src/final_exps.sh``, which have no number of epochs; 20 is ours."""


_ESIM: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 75,
    "batch_size": 32,
    "optimizer.lr": 4e-4,
    "optimizer.clip_norm": 10.0,
}
"""rowanz/swagaf ``swag_baselines/esim/train-elmo.json``; the epochs are its maximum."""


_TAGGER: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 75,
    "batch_size": 64,
    "task.crf": True,
    "task.context": False,
    "optimizer.lr": 1e-3,
    "optimizer.clip_norm": 5.0,
}
"""allennlp-models ``training_config/tagging/ner_elmo.jsonnet``; the epochs are its maximum."""


_PROFILES: Mapping[FinetuneProfile, Mapping[str, object]] = {
    "bert": {},
    "bidaf": _BIDAF,
    "bilstm_attention": _BILSTM_ATTENTION,
    "esim": _ESIM,
    "gpt": _GPT,
    "roberta": _ROBERTA,
    "tagger": _TAGGER,
}


_KINDS: Mapping[FinetuneProfile, tuple[tuple[type[FileTask], ...], str]] = {
    "bidaf": ((QuestionAnsweringTask,), "questions about a context"),
    "bilstm_attention": ((TextTask,), "classes and numbers of texts"),
    "esim": ((TextTask, MultipleChoiceTask), "classes and numbers of texts, and choices"),
    "tagger": ((TaggingTask,), "tags of words"),
}
"""The kinds of tasks that a model was made for alone, and their description."""


_TASK_SETTINGS: Mapping[FinetuneProfile, Mapping[str, Mapping[str, object]]] = {
    "gpt": {task.name: {"task.both_orders": True} for task in (mrpc, qqp, stsb)},
    "roberta": {
        rte.name: {"batch_size": 16, "optimizer.lr": 2e-5},
        stsb.name: {"batch_size": 16, "optimizer.lr": 2e-5},
        mrpc.name: {"batch_size": 16},
        cola.name: {"batch_size": 16},
    },
}
"""Settings of single tasks that differ, by the name of the task."""


def finetuning_profile_settings(profile: FinetuneProfile, task: FileTask) -> dict[str, object]:
    """The published fine-tuning settings of a model that differ from the defaults, by path.

    Those of ``bert`` are the defaults. ``gpt`` reads pairs without an order in both orders. A usage error for a model
    that is for other kinds of tasks.
    """
    kinds, described = _KINDS.get(profile, ((FileTask,), ""))
    if not isinstance(task, kinds):
        raise usage_error(f"--profile {profile} is for {described}; {task.name} is another kind of task.")
    settings = {**_PROFILES[profile], **_TASK_SETTINGS.get(profile, {}).get(task.name, {})}
    if profile == "bilstm_attention" and isinstance(task, TextTask) and not task.pair:
        settings["task.max_length"] = 42  # one text of 40 words
    return settings


SMALL_MODELS = "default for small models"
"""The origin of measured settings in the record of a run."""

_SMALLEST = 5_000_000

_LEARNING_RATES: Mapping[int, float] = {_SMALLEST: 3e-4, 13_000_000: 1.5e-4}
"""Largest number of parameters in the layers -> peak learning rate; larger models have the paper's. BERT-small has 12.6
million, MiniLM-L6 10.6."""

_EPOCHS: Mapping[int, int] = {1_000: 10, 5_000: 6}
"""Largest number of training examples -> epochs of a small model; with more examples, those of the paper."""


def is_small(folder: ModelFolder) -> bool:
    """Whether measured settings suit the model in ``folder`` better than the paper's."""
    return _look_up(_LEARNING_RATES, count_layer_parameters(folder)) is not None


def small_model_settings(folder: ModelFolder, task: FileTask, num_examples: int) -> dict[str, object]:
    """The settings, by path, with which a small model learns most from this many examples.

    The paper's were chosen for networks of 85 million parameters and more, pre-trained for days. A smaller one needs a
    higher learning rate and more steps, for two texts or a question a head that compares them, and numbers around 0.
    """
    found: dict[str, object] = {
        "optimizer.lr": _learning_rate(folder, task),
        "epochs": _look_up(_EPOCHS, num_examples),
        **_head_settings(folder, task),
        **_scale_settings(folder, task),
    }
    return {path: value for path, value in found.items() if value is not None}


def count_layer_parameters(folder: ModelFolder) -> int:
    """The entries of the matrices in all layers; 0 for an encoder that is not a stack of similar layers."""
    encoder = sketch_encoder(folder.spec, folder.config)
    if not isinstance(encoder, LayerStack):
        return 0
    layers = encoder.get_submodule("layers")
    return sum(each.weight.numel() for each in layers.modules() if isinstance(each, nn.Linear))


def _learning_rate(folder: ModelFolder, task: FileTask) -> float | None:
    """The rate for the size of the model; for vectors of texts that of the smallest models only, because others, such
    as MiniLM, were trained for them before."""
    parameters = count_layer_parameters(folder)
    if isinstance(task, SimilarityTask) and parameters > _SMALLEST:
        return None
    return _look_up(_LEARNING_RATES, parameters)


def _head_settings(folder: ModelFolder, task: FileTask) -> dict[str, object]:
    """The mean of the states of a text, a pair head on the means of two, and a question head that finds words again.

    SST-2, 2,000 examples, two seeds: the mean has 73.9 +- 0.6 with a BERT-mini of 30 minutes of pre-training, and [CLS]
    72.5 with one seed and one class for everything with the other; after 6 minutes they are level (74.5, 74.3). With a
    ModernBERT-mini the mean has 72.2 +- 0.3, [CLS] 68.0 +- 0.6. A model that was fine-tuned for the same answers keeps
    its head, one that reads from left to right keeps the state of the last token, and a larger one with a pooler, which
    other libraries read, keeps [CLS].
    """
    if not isinstance(task, TextTask | MultipleChoiceTask | QuestionAnsweringTask):
        return {}
    before = trained_task(folder)
    fits = getattr(task, "pair", True) or not getattr(before, "pair_head", False)  # which one text cannot have
    if before is not None and fits and same_answers(before, task):
        kept = {name: getattr(before, name) for name in task.head_fields}
        return {f"task.{name}": value for name, value in kept.items() if value != getattr(task, name)}
    if context_of(folder.config) != "bidirectional":
        return {}
    reads_all = count_layer_parameters(folder) <= _SMALLEST or not has_pooler(folder)
    return small_head_settings(task) if reads_all else {}


def small_head_settings(task: FileTask) -> dict[str, object]:
    """The head of a task that reads the means of texts, or where the words of a question are; nothing for another task,
    whose head reads no [CLS] or was not measured."""
    if isinstance(task, QuestionAnsweringTask):
        return {"task.question_head": True}
    if not isinstance(task, TextTask):
        return {}
    return {"task.pooling": "mean", **({"task.pair_head": True} if task.pair else {})}


def _scale_settings(folder: ModelFolder, task: FileTask) -> dict[str, object]:
    """Numbers from -1 to 1 instead of those of the files, whose mean would have to be learned first.

    A model that was fine-tuned on another scale keeps that one.
    STS-B, 2,000 examples, BERT-mini after 6 minutes of pre-training: a Spearman correlation of 54 instead of 24.
    """
    if not isinstance(task, RegressionTask) or not task.numbers.has_scale_of(NUMBERS_OF_FILES):
        return {}
    before = trained_task(folder)
    if isinstance(before, RegressionTask) and not before.numbers.has_scale_of(NUMBERS_OF_FILES):
        return {f"task.numbers.{name}": getattr(before.numbers, name) for name in ("origin", "unit")}
    lowest, highest = task.numbers.lowest, task.numbers.highest
    if lowest is None or highest is None or lowest >= highest:
        return {}
    return {"task.numbers.origin": (lowest + highest) / 2, "task.numbers.unit": (highest - lowest) / 2}


def _look_up(table: Mapping[int, Value], number: int) -> Value | None:
    """The value of the first limit that ``number`` does not exceed; None for 0."""
    return next((value for limit, value in table.items() if 0 < number <= limit), None)
