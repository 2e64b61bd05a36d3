"""bertkit: raw text to a pre-trained BERT, to a model for a task, to predictions.

Every verb of the command line is a function here, with the same name and the same options. Importing this package
takes milliseconds: PyTorch is loaded when the first verb is used.
"""

from __future__ import annotations

import gc
import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from bertkit._version import __version__
from bertkit.errors import BertkitError

if TYPE_CHECKING:
    from bertkit.api import (
        Choice,
        Comparison,
        EmbeddingRecord,
        Evaluation,
        Filling,
        FinetuneResult,
        NamedEntity,
        Neighbour,
        Pipeline,
        Prediction,
        Results,
        SpanPrediction,
        SweepResult,
        TokenStates,
        attention,
        bench_finetune,
        bench_inference,
        bench_prepare,
        bench_pretrain,
        compare,
        config_show,
        corpus_check,
        doctor,
        embed,
        evaluate,
        explain,
        export,
        fill,
        finetune,
        glue_submit,
        glue_table,
        import_,
        list_tasks,
        load,
        load_tokenizer,
        predict,
        prepare,
        pretrain,
        quickstart,
        reproduce,
        search,
        serve,
        squad_score,
        tokenizer_compare,
        tokenizer_show,
        tokenizer_train,
        track,
        tune,
    )

__all__ = [
    "BertkitError",
    "Choice",
    "Comparison",
    "EmbeddingRecord",
    "Evaluation",
    "Filling",
    "FinetuneResult",
    "NamedEntity",
    "Neighbour",
    "Pipeline",
    "Prediction",
    "Results",
    "SpanPrediction",
    "SweepResult",
    "TokenStates",
    "__version__",
    "attention",
    "bench_finetune",
    "bench_inference",
    "bench_prepare",
    "bench_pretrain",
    "compare",
    "config_show",
    "corpus_check",
    "doctor",
    "embed",
    "evaluate",
    "explain",
    "export",
    "fill",
    "finetune",
    "glue_submit",
    "glue_table",
    "import_",
    "list_tasks",
    "load",
    "load_tokenizer",
    "predict",
    "prepare",
    "pretrain",
    "quickstart",
    "reproduce",
    "search",
    "serve",
    "squad_score",
    "tokenizer_compare",
    "tokenizer_show",
    "tokenizer_train",
    "track",
    "tune",
]


def __getattr__(name: str) -> object:
    if name == "api":
        return _import("bertkit.api")
    if name == "load":  # a program that only predicts does not wait half a second for all verbs
        return _import("bertkit.inference.pipeline").load
    if name in __all__:
        return getattr(_import("bertkit.api"), name)
    raise AttributeError(f"module bertkit has no attribute {name!r}")


def _import(module: str) -> ModuleType:
    """Import a module without garbage collections, of which an import with PyTorch makes hundreds in 0.3 s."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        if enabled:
            gc.enable()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
