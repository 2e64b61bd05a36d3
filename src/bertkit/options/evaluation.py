"""Options of the verbs that measure models: evaluate, compare, glue table, glue submit, squad score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bertkit.options.inputs import InputFile, InputPath, ModelPath, TablePath
from bertkit.options.job import AnyPath, InferenceJobOptions, ModelJobOptions, Options
from bertkit.ranges import FiniteFloat


@dataclass(frozen=True, kw_only=True)
class LabelledDataOptions(InferenceJobOptions):
    """The options of a verb that reads a labelled file, or one of the task's own."""

    text: str | None = None
    """Column of the text in the file DATA. [default: that of the fine-tuning, or guessed]"""
    pair: str | None = None
    """Column of the second text."""
    label: str | None = None
    """Column of the label, or the columns of 0 and 1 with commas between. [default: that of the fine-tuning]"""
    id: str | None = None
    """Column of the ids. [default: that of the fine-tuning, or one named id]"""
    encoding: str | None = None
    """Encoding of the table DATA, such as cp1252. [default: UTF-8]"""
    split: str = "dev"
    """Which of the task's files, such as dev or test; for a file DATA, what it is called in the report."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(LabelledDataOptions):
    """Score a fine-tuned model with the official metrics and confidence intervals, and write a report."""

    run: ModelPath = field(kw_only=False)
    """Run folder of a fine-tuning, or a fine-tuned model of another library."""
    data: TablePath | None = None
    """Folder with the task's files, or one file with labels. [default: the files of the fine-tuning]"""
    on: str | None = None
    """Another task with the same labels, such as glue:ax for a model of glue:mnli."""
    output: AnyPath | None = None
    """Folder for report.html and report.json. [default: a folder evaluation-... in RUN, which is printed]"""
    overwrite: bool = False
    """Replace the report in OUTPUT."""
    no_baseline: bool = False
    """Do not compare with the most frequent answer and a bag of words."""
    ensemble: Sequence[ModelPath] = ()
    """Run folders that predict together with RUN: the mean of the outputs of their heads."""


@dataclass(frozen=True, kw_only=True)
class CompareOptions(LabelledDataOptions):
    """Test whether one of two fine-tuned models is better than the other by more than chance."""

    first: ModelPath = field(kw_only=False)
    """Run folder of a fine-tuning."""
    second: ModelPath = field(kw_only=False)
    """Run folder of another fine-tuning for the same task."""
    data: TablePath | None = field(default=None, kw_only=False)
    """File with labels, or folder with the task's files. [default: the files of FIRST]"""


@dataclass(frozen=True, kw_only=True)
class GlueTableOptions(Options):
    """Show the dev scores of runs on GLUE's tasks side by side, with the paper's average."""

    runs: Sequence[ModelPath] = field(kw_only=False)
    """Run folders, one per task."""


@dataclass(frozen=True, kw_only=True)
class GlueSubmitOptions(ModelJobOptions):
    """Write the test predictions of runs on GLUE's tasks as the files that GLUE's server scores."""

    runs: Sequence[ModelPath] = field(kw_only=False)
    """Run folders, one per task; the run of glue:mnli predicts the diagnostic set too."""
    output: AnyPath
    """Folder for CoLA.tsv, SST-2.tsv and the others."""
    data: InputPath | None = None
    """Folder that holds CoLA, SST-2 and the others. [default: the files of the fine-tunings]"""
    overwrite: bool = False
    """Replace files in OUTPUT."""


@dataclass(frozen=True, kw_only=True)
class SquadScoreOptions(Options):
    """Score a file of predictions as SQuAD's and KorQuAD's official programs do.

    The predictions may come from any program. Scores are in per cent.
    """

    questions: InputFile = field(kw_only=False)
    """File in SQuAD's format, with gold answers."""
    predictions: InputFile = field(kw_only=False)
    """JSON object of id -> answer."""
    null_odds: InputFile | None = None
    """JSON object of id -> odds that the question has no answer. The best threshold for them is shown too."""
    null_threshold: FiniteFloat | None = None
    """Answers whose null odds are above it are taken as none. [default: 1, as in the official program]"""
    rules: Literal["v1", "v2", "korquad"] | None = None
    """Whose scoring rules. [default: v2 if some question has no answer, else v1]"""
