"""The number of parameters of a pre-training run, and what follows from it before anything is measured."""

from __future__ import annotations

import torch

from bertkit.encoder_types.architectures import spec_of_config
from bertkit.model import Model
from bertkit.pretraining.job import build_pretraining_model
from bertkit.pretraining.record import PretrainRun
from bertkit.training.precision import default_device, measure_matmul_speed


def sketch_model(run: PretrainRun) -> Model:
    """The model of a run on the meta device: shapes without memory, for counting."""
    with torch.device("meta"):
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


def affordable_tokens(run: PretrainRun, seconds: float) -> float:
    """About how many tokens a step of ``seconds`` reads: 6 FLOP per parameter, at half the speed of matrix products."""
    speed = measure_matmul_speed(default_device())[str(run.precision)] * 1e9
    return seconds * speed / 2 / (6 * sum(count_parameters(run).values()))
