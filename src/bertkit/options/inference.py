"""Options of the verbs that apply a model: fill and predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bertkit.options.inputs import ModelPath, TableStream
from bertkit.options.job import AnyPath, InferenceJobOptions, InferenceOptions
from bertkit.ranges import VocabularySize


@dataclass(frozen=True, kw_only=True)
class FillOptions(InferenceOptions):
    """Predict the words at [MASK]."""

    model: ModelPath = field(kw_only=False)
    """Run folder or Hugging Face folder of a BERT, RoBERTa or ModernBERT with its masked-LM head."""
    text: str = field(kw_only=False)
    """Text with at least one [MASK], which is <mask> for RoBERTa."""
    top_k: VocabularySize = 5
    """Predictions per mask."""


@dataclass(frozen=True, kw_only=True)
class PredictOptions(InferenceJobOptions):
    """Predict every row of a file.

    The same command continues after an interruption.
    """

    CONTINUES = True

    run: ModelPath = field(kw_only=False)
    """Run folder of a fine-tuning, or a fine-tuned model of another library."""
    input: TableStream = field(kw_only=False)
    """.csv, .tsv, .jsonl, .json, .parquet, .xlsx, or .txt with one text per line; - is stdin."""
    output: AnyPath
    """.csv, .tsv, .jsonl, .parquet, .txt, or .json with one answer per id; - is stdout."""
    text: str | None = None
    """Column of the text. [default: that of the fine-tuning, or guessed]"""
    pair: str | None = None
    """Column of the second text."""
    id: str | None = None
    """Column of the ids. [default: that of the fine-tuning, or one named id]"""
    encoding: str | None = None
    """Encoding of the table INPUT, such as cp1252. [default: UTF-8]"""
    ensemble: Sequence[ModelPath] = ()
    """Run folders that predict together with RUN: the mean of the outputs of their heads."""
    overwrite: bool = False
    """Replace OUTPUT if it exists."""
