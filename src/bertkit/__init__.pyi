"""The public names of bertkit and the modules that define them, for type checkers and for ``__init__.py``."""

__all__: list[str]

from ._version import __version__ as __version__
from .api.benchmarks import glue_submit as glue_submit
from .api.benchmarks import glue_table as glue_table
from .api.benchmarks import squad_score as squad_score
from .api.embedding import embed as embed
from .api.embedding import search as search
from .api.evaluation import compare as compare
from .api.evaluation import evaluate as evaluate
from .api.exchange import export as export
from .api.exchange import import_ as import_
from .api.explanation import attention as attention
from .api.explanation import explain as explain
from .api.finetuning import finetune as finetune
from .api.finetuning import tune as tune
from .api.inference import fill as fill
from .api.inference import predict as predict
from .api.pretraining import pretrain as pretrain
from .api.records import config_show as config_show
from .api.records import track as track
from .api.reproduction import reproduce as reproduce
from .api.serving import serve as serve
from .api.speed import (
    bench_finetune as bench_finetune,
)
from .api.speed import (
    bench_inference as bench_inference,
)
from .api.speed import (
    bench_prepare as bench_prepare,
)
from .api.speed import (
    bench_pretrain as bench_pretrain,
)
from .api.start import doctor as doctor
from .api.start import quickstart as quickstart
from .api.task_choice import list_tasks as list_tasks
from .api.text import (
    corpus_check as corpus_check,
)
from .api.text import (
    load_tokenizer as load_tokenizer,
)
from .api.text import (
    prepare as prepare,
)
from .api.text import (
    tokenizer_compare as tokenizer_compare,
)
from .api.text import (
    tokenizer_show as tokenizer_show,
)
from .api.text import (
    tokenizer_train as tokenizer_train,
)
from .errors import BertkitError as BertkitError
from .evaluation.compare import Comparison as Comparison
from .evaluation.report import Evaluation as Evaluation
from .finetuning.results import FinetuneResult as FinetuneResult
from .inference.embedding import TokenStates as TokenStates
from .inference.embedding_store import EmbeddingRecord as EmbeddingRecord
from .inference.fill import Filling as Filling
from .inference.pipeline import Pipeline as Pipeline
from .inference.pipeline import load as load
from .inference.search import Neighbour as Neighbour
from .results import Results as Results
from .sweeps.results import SweepResult as SweepResult
from .task_types import (
    Choice as Choice,
)
from .task_types import (
    NamedEntity as NamedEntity,
)
from .task_types import (
    Prediction as Prediction,
)
from .task_types import (
    SpanPrediction as SpanPrediction,
)
from .task_types import (
    TagPrediction as TagPrediction,
)
