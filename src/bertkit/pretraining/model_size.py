"""The number of parameters of a pre-training run, and what follows from it before anything is measured."""

from __future__ import annotations

import math
from dataclasses import fields, replace

from bertkit.encoder_types.architectures import spec_of_config
from bertkit.encoder_types.building import without_weights
from bertkit.encoder_types.transformer import Transformer
from bertkit.errors import usage_error
from bertkit.machine.device import default_device
from bertkit.machine.memory import total_memory
from bertkit.machine.precision import expected_speed
from bertkit.model import Model
from bertkit.pretraining.job import build_pretraining_model
from bertkit.pretraining.record import PretrainRun
from bertkit.training.distributed import world_size

_PARAMETER_BYTES, _SHARDED_BYTES = 12, 4
"""Of a weight with its gradient and one moment at least. Where these are sharded, each process still builds the whole
model once."""

_KEPT_STATES = 8
"""States of the hidden width that a block keeps at least: queries, keys, values, the attention's output, and the
intermediate layer, which is four times as wide."""


def sketch_model(run: PretrainRun) -> Model:
    """The model of a run without its weights, for counting."""
    with without_weights():
        return build_pretraining_model(run)


def count_parameters(run: PretrainRun) -> dict[str, int]:
    """Parameters of the embeddings, layers and heads; embeddings that a head shares are counted once.

    The embeddings of ELMo are its character network.
    """
    every = {name: parameter.numel() for name, parameter in sketch_model(run).named_parameters()}
    inside = sum(count for name, count in every.items() if name.startswith("encoder."))
    prefixes = tuple(f"encoder.{prefix}" for prefix in spec_of_config(run.encoder).embeddings)
    embeddings = sum(count for name, count in every.items() if name.startswith(prefixes))
    return {"embeddings": embeddings, "layers": inside - embeddings, "heads": sum(every.values()) - inside}


def check_memory(run: PretrainRun) -> None:
    """Raise a usage error for a run that needs more memory than the device has, whatever else uses it.

    Only what every run needs is counted: weights, gradients and moments, what the layers keep for the backward pass in
    16 bits, and the ids of a batch. All layers have the same size, so they are counted from networks of one and two.
    """
    total = total_memory(default_device())
    if total is None:
        return
    first, second = (sum(count_parameters(_with_layers(run, layers)).values()) for layers in (1, 2))
    layers = getattr(run.encoder, "num_layers", 1)
    parameters = first + (layers - 1) * (second - first)
    encoder = sketch_model(_with_layers(run, 1)).encoder
    kept = _KEPT_STATES if isinstance(encoder, Transformer) and not run.gradient_checkpointing else 1
    tokens = max(run.tokens_per_phase) // world_size()
    own = [(run.rows_at_once(rows, world_size()), length) for rows, length in run.batch_shapes]
    states = max(map(math.prod, own)) * encoder.hidden_size * layers * kept
    needed = parameters * (_SHARDED_BYTES if run.shard else _PARAMETER_BYTES) + states * 2 + tokens * 8
    if needed > total:
        raise usage_error(
            f"this run needs {needed / 2**30:,.0f} GiB of memory or more, and there are {total / 2**30:,.0f} GiB: it "
            f"has {parameters:,} parameters and {tokens:,} tokens per step. Choose a smaller --size, or lower "
            "--batch-size or micro_batch_size."
        )


def _with_layers(run: PretrainRun, layers: int) -> PretrainRun:
    if all(each.name != "num_layers" for each in fields(run.encoder)):
        return run
    return replace(run, encoder=replace(run.encoder, num_layers=layers))


def affordable_tokens(run: PretrainRun, seconds: float) -> float:
    """About how many tokens a step of ``seconds`` reads, with 6 FLOP per parameter."""
    speed = expected_speed(default_device(), run.chosen_precision)
    return seconds * speed / (6 * sum(count_parameters(run).values()))
