"""The speed of a pre-training step (forward, backward, clipping, AdamW), beside that of Hugging Face.

bertkit's steps are those of ``bertkit pretrain``. Dropout is on, 15 % of the tokens are masked, and both systems learn
MLM and NSP from the same batch, which is made once, with the same optimizer. One more system computes a single large
product in the fastest format: the GFLOP/s that the processor can reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.contracts import Objective
from bertkit.encoder_types.building import without_weights
from bertkit.encoders.bert import Bert, BertConfig, size
from bertkit.machine.precision import Precision
from bertkit.model import Model
from bertkit.objective_settings import Masking
from bertkit.objectives.mlm import MaskedLanguageModel, mask_tokens
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.optional import require
from bertkit.options.speed import BenchPretrainOptions, TrainingPeer
from bertkit.rng import CounterRng
from bertkit.speed.rounds import (
    EXTRA,
    OWN,
    SpeedComparison,
    StepMaker,
    add_peers,
    choose_formats,
    clock_name,
    compare,
    fastest_of,
    time_steps,
)
from bertkit.speed.training_steps import FindLoss, make_step, own_training
from bertkit.training.flops import count_flops
from bertkit.training.optimizer import OptimizerConfig

VOCABULARY = 30522
CLS, SEP, MASK = 101, 102, 103
LARGE_PRODUCT = (4096, 768, 3072)
"""Rows, inner and outer width of the product that measures the speed of the chip."""

_PRODUCT = "one large product"
_FEWEST_POSITIONS = 512
OPTIMIZER = OptimizerConfig(lr=1e-4, bias_correction=True)


def compare_pretraining(options: BenchPretrainOptions, say: Callable[[str], None]) -> SpeedComparison:
    """Tokens per second of bertkit and of the peers on the CPU, in float32 and, if it is not emulated, bfloat16."""
    necessary = count_work(options, make_batch(options.batch_size, options.seq_length)) / 1e9
    formats, emulated = choose_formats(say)
    own: dict[str, StepMaker] = {f"{OWN} {name}": partial(own_steps, options, name) for name in formats}
    systems, left_out = add_peers(own, options.against, partial(peer_systems, options, formats), say)
    product_format = fastest_of(formats)
    systems[_PRODUCT] = partial(product_steps, product_format)
    speeds = time_steps(systems, rounds=options.rounds, seconds=options.seconds, say=say)
    product = float(np.median(speeds.pop(_PRODUCT))) / 1e9
    fastest = max(float(np.median(speeds[name])) for name in own) / (options.batch_size * options.seq_length)
    return compare(
        speeds,
        work=f"pre-training BERT-{options.size}, {options.batch_size} rows of {options.seq_length} tokens",
        unit="tokens",
        clock=clock_name(),
        left_out={**emulated, **left_out},
        notes=(
            f"{_PRODUCT} in {product_format}: {product:,.0f} GFLOP/s; a step has {necessary:,.1f} necessary GFLOP, "
            f"and the fastest of {OWN} reaches {fastest * necessary / product:.0%} of that speed",
        ),
    )


def peer_systems(
    options: BenchPretrainOptions, formats: Sequence[Precision], peer: TrainingPeer
) -> Iterator[tuple[str, StepMaker]]:
    """Hugging Face's model with torch's attention; a usage error if the library is not installed."""
    require("transformers", extra=EXTRA, purpose=f"--against {peer}")
    for name in formats:
        yield f"Hugging Face {name}", partial(huggingface_steps, options, name)


def own_steps(options: BenchPretrainOptions, precision: Precision) -> Iterator[int]:
    """The steps of ``bertkit pretrain``, each with its number of tokens."""
    model = build_model(options)
    source = OneBatch(make_batch(options.batch_size, options.seq_length))
    for step in own_training(model, source, OPTIMIZER, batch_size=options.batch_size, precision=precision):
        yield step.tokens


def huggingface_steps(options: BenchPretrainOptions, precision: Precision) -> Iterator[int]:
    """The steps of a plain loop around Hugging Face's model, each with its number of tokens."""
    batch = make_batch(options.batch_size, options.seq_length)
    model, find_loss = build_huggingface(options, batch)
    step = make_step(model, OPTIMIZER, precision)
    while True:
        step(find_loss)
        yield batch.num_tokens


def product_steps(precision: Precision) -> Iterator[int]:
    """Matrix products large enough for full speed, each with its number of floating-point operations."""
    rows, inner, outer = LARGE_PRODUCT
    dtype = getattr(torch, precision)
    states, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(outer, inner, dtype=dtype)
    while True:
        nn.functional.linear(states, weight)
        yield 2 * math.prod(LARGE_PRODUCT)


@dataclass(frozen=True, slots=True, eq=False)
class OneBatch:
    """A source of batches that are all ``only``: the time of a step is that of training."""

    only: Batch

    def __len__(self) -> int:
        return len(self.only)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The batch, whatever its rows are."""
        return self.only


def make_batch(rows: int, tokens: int) -> Batch:
    """Full rows of random tokens, masked as in pre-training."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, VOCABULARY, (rows, tokens), generator=generator)
    ids[:, 0], ids[:, tokens // 2], ids[:, -1] = CLS, SEP, SEP
    segments = (torch.arange(tokens) > tokens // 2).long().expand(rows, tokens).contiguous()
    batch = Batch(
        input_ids=ids,
        segment_ids=segments,
        attention_mask=torch.ones_like(ids, dtype=torch.bool),
        labels={"nsp": torch.randint(0, 2, (rows,), generator=generator)},
    )
    rng = CounterRng(0, 0, np.arange(rows))
    return mask_tokens(batch, rng, Masking(), vocab_size=VOCABULARY, mask_id=MASK, special_ids=(CLS, SEP))


def count_work(options: BenchPretrainOptions, batch: Batch) -> int:
    """The necessary floating-point operations of a step."""
    with without_weights():
        model = build_model(options)
    return count_flops(model, batch)


def build_huggingface(options: BenchPretrainOptions, batch: Batch) -> tuple[nn.Module, FindLoss]:
    """Hugging Face's model with torch's attention (sdpa), and its loss."""
    transformers = require("transformers", extra=EXTRA, purpose="--against hf")
    own = _config(options)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=own.hidden_size,
        num_hidden_layers=own.num_layers,
        num_attention_heads=own.num_heads,
        intermediate_size=own.intermediate_size,
        max_position_embeddings=own.max_positions,
        attn_implementation="sdpa",
    )
    model: nn.Module = transformers.BertForPreTraining(config).train().to(batch.input_ids.device)
    inputs = {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.attention_mask.long(),
        "labels": batch.labels["mlm"],
        "next_sentence_label": batch.labels["nsp"],
    }

    def find_loss() -> Tensor:
        loss: Tensor = model(**inputs).loss
        return loss

    return model, find_loss


def build_model(options: BenchPretrainOptions) -> Model:
    """bertkit's model: a BERT with the heads of MLM and NSP."""
    encoder = Bert(_config(options))
    heads: dict[str, Objective] = {
        "mlm": MaskedLanguageModel(encoder.embeddings.word),
        "nsp": NextSentencePrediction(encoder.hidden_size),
    }
    return Model(encoder, heads)


def _config(options: BenchPretrainOptions) -> BertConfig:
    positions = max(_FEWEST_POSITIONS, options.seq_length)
    return size(options.size, vocab_size=VOCABULARY, max_positions=positions)
