"""A pre-training that is ready to begin: the corpus opened, the model and its optimizer built, everything checked."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

from bertkit.contracts import Encoder, SubwordTokenizer
from bertkit.data.batches import OrderedSource
from bertkit.data.shards import Corpus
from bertkit.encoder_types.architectures import spec_of_config
from bertkit.errors import usage_error
from bertkit.model import Model
from bertkit.pretraining.phases import Phase, build_phases
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.resuming import describe_run
from bertkit.task_types.pretraining import DataReport, report_data
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup
from bertkit.training.fit import TrainingState
from bertkit.training.optimizer import build_optimizer
from bertkit.training.precision import default_device


@dataclass(frozen=True, kw_only=True)
class PretrainingJob:
    """One process's part in a run."""

    run: PretrainRun
    corpus: Corpus
    tokenizer: SubwordTokenizer
    phases: list[Phase]
    state: TrainingState
    data: DataReport
    group: ProcessGroup
    about: dict[str, Any]
    """What checkpoints and the record remember of the run: ``describe_run``."""

    @property
    def total_steps(self) -> int:
        """Those of all phases."""
        return self.phases[-1].until


def build_job(run: PretrainRun, group: ProcessGroup = SINGLE_PROCESS) -> PretrainingJob:
    """Everything that the steps of ``run`` need; raises a usage error where the settings do not fit together."""
    corpus = Corpus.open(run.data)
    tokenizer = corpus.load_tokenizer()
    _check_encoder(run, tokenizer)
    for name, rows in {"batch_size": run.batch_size, "long_batch_size": run.long_batch_size or 0}.items():
        if rows % group.size:
            raise usage_error(f"{name} is {rows}; {group.size} processes need a multiple of their number.")
    if run.shard and run.optimizer.kind == "lamb":
        raise usage_error(
            "shard divides tensors, and LAMB needs their norms whole: give optimizer.kind=adam, or no shard."
        )
    torch.manual_seed(run.seed)
    model = build_model(run).to(default_device())
    model.encoder.gradient_checkpointing = run.gradient_checkpointing
    if run.shard and not hasattr(model.encoder, "layers"):
        raise usage_error("shard divides encoders that are a stack of like blocks; leave it out.")
    if run.shard and group.size > 1:
        load_sharding().shard(model, model.encoder.layers)
    phases = build_phases(run, corpus, tokenizer)
    model.encoder.stateful = isinstance(phases[0].source, OrderedSource)
    if model.encoder.stateful and (run.micro_batch_size or run.batch_size) * group.size < run.batch_size:
        raise usage_error(
            f"micro_batch_size is {run.micro_batch_size}; rows that go on from batch to batch are read all at once: "
            "leave it out, or lower batch_size."
        )
    return PretrainingJob(
        run=run,
        corpus=corpus,
        tokenizer=tokenizer,
        phases=phases,
        state=TrainingState(model, build_optimizer(model, run.optimizer)),
        data=report_data(phases[0].source),
        group=group,
        about=describe_run(run),
    )


def _check_encoder(run: PretrainRun, tokenizer: SubwordTokenizer) -> None:
    """See that the encoder knows all pieces, and has positions for all of a row; ELMo needs neither."""
    vocab_size = getattr(run.encoder, "vocab_size", tokenizer.vocab_size)
    if vocab_size != tokenizer.vocab_size:
        raise usage_error(f"encoder.vocab_size is {vocab_size}; {run.data} has {tokenizer.vocab_size} pieces.")
    pad_id = getattr(run.encoder, "pad_id", tokenizer.pad_id)
    if pad_id != tokenizer.pad_id:
        raise usage_error(f"encoder.pad_id is {pad_id}; {run.data} has rows filled up with {tokenizer.pad_id}.")
    letters = getattr(tokenizer, "word_length", None)
    read = getattr(run.encoder, "word_length", letters)
    if letters is not None and read != letters:
        raise usage_error(f"encoder.word_length is {read}; {run.data} has words of {letters} characters.")
    longest = max(run.seq_length, run.long_seq_length or 0)
    positions = getattr(run.encoder, "max_positions", longest)
    if longest > positions:
        raise usage_error(f"encoder.max_positions is {positions}; sequences of {longest} need more.")


def build_model(run: PretrainRun) -> Model:
    """The model with its first values, as the random state has them."""
    encoder: Encoder = spec_of_config(run.encoder).encoder(run.encoder)
    return Model(encoder, run.task.objectives(encoder))


def load_sharding() -> Any:
    """``training/sharding.py``, when it is wanted: two seconds that nothing else has to wait for."""
    return import_module("bertkit.training.sharding")
