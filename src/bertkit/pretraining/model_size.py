"""What the sizes of a pre-training say of its cost, before anything is measured."""

from __future__ import annotations

import torch

from bertkit.encoder_types.architectures import spec_of_config
from bertkit.model import Model
from bertkit.pretraining.job import build_model
from bertkit.pretraining.record import PretrainRun
from bertkit.training.precision import default_device, measure_matmul_speed


def sketch_model(run: PretrainRun) -> Model:
    """The model of a run without memory: its shapes, to be counted."""
    with torch.device("meta"):
        return build_model(run)


def count_parameters(run: PretrainRun) -> dict[str, int]:
    """By part; the embeddings that a head shares are counted once, as embeddings. Those of ELMo are its characters."""
    every = {name: parameter.numel() for name, parameter in sketch_model(run).named_parameters()}
    inside = sum(count for name, count in every.items() if name.startswith("encoder."))
    prefixes = tuple(f"encoder.{prefix}" for prefix in spec_of_config(run.encoder).embeddings)
    embeddings = sum(count for name, count in every.items() if name.startswith(prefixes))
    return {"embeddings": embeddings, "layers": inside - embeddings, "heads": sum(every.values()) - inside}


def affordable_tokens(run: PretrainRun, seconds: float) -> float:
    """About how many tokens a step of so many seconds reads: 6 FLOP a parameter, at half the speed of products."""
    speed = measure_matmul_speed(default_device())[str(run.precision)] * 1e9
    return seconds * speed / 2 / (6 * sum(count_parameters(run).values()))
