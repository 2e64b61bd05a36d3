"""The options of every verb: one documented record per verb, the source of all that a user sees of them.

The docstring of a record says what its verb does, and the text under a field what that option means. The Python
functions (``api``), the command line (``cli``), ``help(bertkit.finetune)`` and the pages of ``docs/reference`` are made
from them. Only the standard library is imported here, so that ``bertkit finetune --help`` does not wait for PyTorch.
"""

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
from bertkit.options.job import JobOptions, Options, ProgressMode
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

__all__ = [
    "AttentionOptions",
    "BenchFinetuneOptions",
    "BenchInferenceOptions",
    "BenchPrepareOptions",
    "BenchPretrainOptions",
    "CompareOptions",
    "ConfigShowOptions",
    "CorpusCheckOptions",
    "DoctorOptions",
    "EmbedOptions",
    "EvaluateOptions",
    "ExplainOptions",
    "ExportOptions",
    "FillOptions",
    "FinetuneOptions",
    "GlueSubmitOptions",
    "GlueTableOptions",
    "ImportOptions",
    "JobOptions",
    "Options",
    "PredictOptions",
    "PrepareOptions",
    "PretrainOptions",
    "ProgressMode",
    "QuickstartOptions",
    "ReproduceOptions",
    "SearchOptions",
    "ServeOptions",
    "SquadScoreOptions",
    "TokenizerCompareOptions",
    "TokenizerShowOptions",
    "TokenizerTrainOptions",
    "TrackOptions",
    "TuneOptions",
]
