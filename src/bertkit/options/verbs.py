"""The list of all verbs, in the order and under the headings of ``bertkit --help``."""

from __future__ import annotations

from collections.abc import Mapping

from bertkit import options
from bertkit.options.job import Options

HEADINGS: Mapping[str, Mapping[str, type[Options]]] = {
    "start": {"quickstart": options.QuickstartOptions, "doctor": options.DoctorOptions},
    "from text to a model": {
        "corpus check": options.CorpusCheckOptions,
        "tokenizer train": options.TokenizerTrainOptions,
        "tokenizer show": options.TokenizerShowOptions,
        "tokenizer compare": options.TokenizerCompareOptions,
        "prepare": options.PrepareOptions,
        "pretrain": options.PretrainOptions,
    },
    "from a model to predictions": {
        "fill": options.FillOptions,
        "finetune": options.FinetuneOptions,
        "tune": options.TuneOptions,
        "evaluate": options.EvaluateOptions,
        "compare": options.CompareOptions,
        "predict": options.PredictOptions,
        "embed": options.EmbedOptions,
        "search": options.SearchOptions,
        "glue table": options.GlueTableOptions,
        "glue submit": options.GlueSubmitOptions,
        "squad score": options.SquadScoreOptions,
        "bench prepare": options.BenchPrepareOptions,
        "bench pretrain": options.BenchPretrainOptions,
        "bench finetune": options.BenchFinetuneOptions,
        "bench inference": options.BenchInferenceOptions,
    },
    "serving": {
        "serve": options.ServeOptions,
        "attention": options.AttentionOptions,
        "explain": options.ExplainOptions,
    },
    "models of other libraries": {"import": options.ImportOptions, "export": options.ExportOptions},
    "the paper": {"reproduce": options.ReproduceOptions},
    "records": {"track": options.TrackOptions, "config show": options.ConfigShowOptions},
}

VERBS: Mapping[str, type[Options]] = {verb: record for verbs in HEADINGS.values() for verb, record in verbs.items()}
"""The record of options of each verb, by the words of the command line; the Python name has ``_`` for a space."""
