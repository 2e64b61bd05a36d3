"""Options of finetune and tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

from bertkit.options.inputs import DataTable, Input, InputPath, ModelPath, TableFile, TablePath
from bertkit.options.job import AnyPath, Engine, TrainingOptions
from bertkit.ranges import BatchSize, ExtraLayers, LearningRate, PositiveInt, Repetitions, Seed, ShareAboveZero

LabelKind = Literal["classes", "number", "labels", "similarity"]
FinetuneProfile = Literal["bert", "bidaf", "bilstm_attention", "esim", "gpt", "roberta", "tagger"]
Sampler = Literal["tpe", "random"]


@runtime_checkable
class TaskValue(Protocol):
    """A task that was built in Python, such as ``bertkit.tasks.glue.sst2`` or a ``TextClassificationTask``."""

    @property
    def name(self) -> str:
        """The name in messages and records."""

    @property
    def metric(self) -> str:
        """The score that picks the best epoch."""


@dataclass(frozen=True, kw_only=True)
class TaskTrainingOptions(TrainingOptions):
    """What finetune and tune have in common: the task, its files, the model and the settings of training."""

    KEEPS_TABLES: ClassVar[bool] = True
    CONTINUES = True

    task: Annotated[str | Path | TaskValue | DataTable, Input("task")] = field(kw_only=False)
    """A task's name such as glue:sst2 (bertkit finetune --list shows all), a .csv, .tsv, .jsonl, .parquet or .xlsx
    file, a folder of train, dev and test files, or one with a folder of text files for each label."""
    model: ModelPath
    """Run folder, Hugging Face folder or TensorFlow checkpoint of a pre-trained model."""
    output: AnyPath
    """Run folder: record, metrics, plots, the best model."""
    data: InputPath | None = None
    """Folder with the task's files. [default: the task's folder under BERTKIT_DATA]"""
    train: Sequence[TablePath] = ()
    """Training files, instead of those of a named task; further ones for your own table."""
    dev: TablePath | None = None
    """Development file, which picks the best epoch; without one, a tenth of your own table is held out."""
    test: TablePath | None = None
    """Test file, for bertkit evaluate RUN --split test; not used in training."""
    text: str | None = None
    """Column of the text in your own table. [default: guessed, and printed]"""
    pair: str | None = None
    """Column of the second text."""
    label: str | None = None
    """Column of the label, or the columns of 0 and 1, one for each label, with commas between."""
    kind: LabelKind | None = None
    """Whether the label is one class, a number, or several labels at once; similarity trains a model of embeddings on
    pairs of texts, with a score or without. [default: guessed, and printed]"""
    class_weights: str | Mapping[Any, float] | None = None
    """Weights of the classes in the loss: NAME=NUMBER,NAME=NUMBER, or "balanced" for inverse frequencies. In Python
    also a dictionary, such as {"positive": 2}, or {0: 1, 1: 5} where the labels are numbers."""
    allow_rare_labels: bool = False
    """Keep rare labels that look like misspellings of a common one, and spellings that differ in case or spacing, as
    classes of their own."""
    fold_labels: bool = False
    """Treat labels that differ in case or spacing only as one, spelled as it is most often."""
    encoding: str | None = None
    """Encoding of your own tables, such as cp1252. [default: UTF-8]"""
    seeds: Repetitions = 1
    """Number of restarts, whose mean, standard deviation and best score are shown."""
    first_seed: Seed = 0
    """Seed of the first restart; the others count up from it."""
    profile: FinetuneProfile | None = None
    """The published fine-tuning settings of this model; other options take precedence. [default: bert; a small model
    has settings of its own]"""
    epochs: Repetitions | None = None
    """Passes over the training examples. [default: 3; a small model has more on few examples]"""
    lr: LearningRate | None = None
    """Peak learning rate. [default: 5e-5; more for a small model]"""
    batch_size: BatchSize | None = None
    """Examples per optimizer step. [default: 32]"""
    limit: PositiveInt | None = None
    """Use the first N training examples only; shuffle a sorted file."""
    no_baseline: bool = False
    """Do not compare with the most frequent answer and a bag of words."""
    from_scratch: bool = False
    """Start from random weights of the same architecture, to measure what pre-training contributes."""
    reinit_layers: ExtraLayers = 0
    """For small data: reinitialize this many of the last layers, and the pooler."""
    layer_decay: ShareAboveZero = 1.0
    """For small data: the learning rate of each layer as a share of that of the layer above it, such as 0.95."""
    teacher: ModelPath | None = None
    """Distil: train on the probabilities of this larger model too, which was fine-tuned for the same classes."""
    unlabelled: TableFile | None = None
    """For --teacher: a file of more texts, whose labels are not needed."""
    set: Sequence[str] | Mapping[str, object] = ()
    """Any settings, such as schedule.warmup=0.06. In Python also a dictionary, such as {"schedule.warmup": 0.06}."""


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(TaskTrainingOptions):
    """Fine-tune a pre-trained model for a task, or on your own table.

    The columns of a table are guessed, and the guess is printed.
    """

    then: Annotated[str | Path | TaskValue | DataTable, Input("task")] | None = None
    """Another task or file, on which the result is fine-tuned again; the first model goes into RUN/first, with one
    seed. Options about files, columns, labels, classes and a teacher, and --limit, are for the first; --set is for
    both."""


@dataclass(frozen=True, kw_only=True)
class TuneOptions(TaskTrainingOptions):
    """Fine-tune with every configuration of a grid, and keep the one with the best mean score on dev.

    The same command continues after an interruption. Started several times, also on machines that share the folder, it
    divides the configurations among the processes.
    """

    output: AnyPath
    """Folder of the sweep: table, plot, one run per configuration, the best model as SWEEP/best."""
    seeds: Repetitions = 1
    """Restarts per configuration; their mean decides."""
    grid: Sequence[str] | Mapping[str, Sequence[object]] = ()
    """What is varied: lr=5e-5,3e-5 epochs=2,3, and any other setting by its path. An option cannot be both given and
    varied. In Python also a dictionary, such as {"lr": [5e-5, 3e-5]}. [default: the paper's grid; for a small
    model learning rates around its own]"""
    trials: Repetitions | None = None
    """Sample this many configurations with optuna; --grid may then have ranges, such as lr=1e-5..1e-4."""
    sampler: Sampler = "tpe"
    """How configurations are sampled: by TPE, which uses the results so far, or at random."""
    engine: Engine = "local"
    """Train on this machine, or in one process per GPU or core of a Ray cluster whose nodes have bertkit and the same
    files (bertkit[ray])."""
