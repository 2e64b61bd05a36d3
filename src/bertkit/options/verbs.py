"""The list of all verbs, in the order and under the headings of ``bertkit --help``."""

from __future__ import annotations

from collections.abc import Mapping

from bertkit.options.embedding import EmbedOptions, SearchOptions
from bertkit.options.evaluation import (
    CompareOptions,
    EvaluateOptions,
    GlueSubmitOptions,
    GlueTableOptions,
    SquadScoreOptions,
)
from bertkit.options.exchange import ExportOptions, ImportOptions
from bertkit.options.explanation import AttentionOptions, ExplainOptions
from bertkit.options.finetuning import FinetuneOptions, TuneOptions
from bertkit.options.inference import FillOptions, PredictOptions
from bertkit.options.job import Options
from bertkit.options.pretraining import PretrainOptions
from bertkit.options.records import ConfigShowOptions, TrackOptions
from bertkit.options.reproduction import ReproduceOptions
from bertkit.options.serving import ServeOptions
from bertkit.options.speed import (
    BenchFinetuneOptions,
    BenchInferenceOptions,
    BenchPrepareOptions,
    BenchPretrainOptions,
)
from bertkit.options.start import DoctorOptions, QuickstartOptions
from bertkit.options.text import (
    CorpusCheckOptions,
    PrepareOptions,
    TokenizerCompareOptions,
    TokenizerShowOptions,
    TokenizerTrainOptions,
)

HEADINGS: Mapping[str, Mapping[str, type[Options]]] = {
    "start": {"quickstart": QuickstartOptions, "doctor": DoctorOptions},
    "from text to a model": {
        "corpus check": CorpusCheckOptions,
        "tokenizer train": TokenizerTrainOptions,
        "tokenizer show": TokenizerShowOptions,
        "tokenizer compare": TokenizerCompareOptions,
        "prepare": PrepareOptions,
        "pretrain": PretrainOptions,
    },
    "from a model to predictions": {
        "fill": FillOptions,
        "finetune": FinetuneOptions,
        "tune": TuneOptions,
        "evaluate": EvaluateOptions,
        "compare": CompareOptions,
        "predict": PredictOptions,
        "embed": EmbedOptions,
        "search": SearchOptions,
        "attention": AttentionOptions,
        "explain": ExplainOptions,
    },
    "serving and other libraries": {"serve": ServeOptions, "import": ImportOptions, "export": ExportOptions},
    "the paper and its benchmarks": {
        "reproduce": ReproduceOptions,
        "glue table": GlueTableOptions,
        "glue submit": GlueSubmitOptions,
        "squad score": SquadScoreOptions,
    },
    "speed of this machine": {
        "bench prepare": BenchPrepareOptions,
        "bench pretrain": BenchPretrainOptions,
        "bench finetune": BenchFinetuneOptions,
        "bench inference": BenchInferenceOptions,
    },
    "records of runs": {"track": TrackOptions, "config show": ConfigShowOptions},
}

VERBS: Mapping[str, type[Options]] = {verb: record for verbs in HEADINGS.values() for verb, record in verbs.items()}
"""The record of options of each verb, by the words of the command line; the Python name has ``_`` for a space."""
