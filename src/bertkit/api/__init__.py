"""The verbs as Python functions: the same names and options as on the command line.

What a command shows, its function returns. Paths may be text. Mistakes raise BertkitError with one line.
"""

from bertkit.api.benchmarks import glue_submit, glue_table, squad_score
from bertkit.api.embedding import embed, search
from bertkit.api.evaluation import compare, evaluate
from bertkit.api.exchange import export, import_
from bertkit.api.explanation import attention, explain
from bertkit.api.finetuning import finetune, tune
from bertkit.api.inference import fill, predict
from bertkit.api.pretraining import pretrain
from bertkit.api.records import config_show, track
from bertkit.api.reproduction import reproduce
from bertkit.api.serving import serve
from bertkit.api.speed import bench_finetune, bench_inference, bench_prepare, bench_pretrain
from bertkit.api.start import doctor, quickstart
from bertkit.api.task_choice import list_tasks
from bertkit.api.text import (
    corpus_check,
    load_tokenizer,
    prepare,
    tokenizer_compare,
    tokenizer_show,
    tokenizer_train,
)
from bertkit.evaluation.compare import Comparison
from bertkit.evaluation.report import Evaluation
from bertkit.finetuning.results import FinetuneResult
from bertkit.inference.embedding import TokenStates
from bertkit.inference.embedding_store import EmbeddingRecord
from bertkit.inference.fill import Filling
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.search import Neighbour
from bertkit.results import Results
from bertkit.sweeps.results import SweepResult
from bertkit.task_types import Choice, NamedEntity, Prediction, SpanPrediction

__all__ = [
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
