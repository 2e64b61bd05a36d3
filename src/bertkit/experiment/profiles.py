"""Settings of a pre-training that belong together, under a name: the paper's, and those that learn sooner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from bertkit.encoders.bert import BertConfig

Profile = Literal["paper", "fast"]

_SMALL_WIDTH = 256
"""Up to here the settings were measured (docs/results/pretraining-mini.md)."""

_RATES: Mapping[int, float] = {128: 3e-3, 256: 1e-3}
"""Peak learning rate by hidden width."""


def settings_of_profile(profile: Profile, encoder: BertConfig) -> dict[str, Any]:
    """The settings of ``profile`` that differ from the defaults, by path; those of ``paper`` are the defaults.

    ``fast`` masks 30 % (Wettig et al. 2023), leaves dropout out of the attention and starts positions as sinusoids.
    Narrow networks, which are trained for minutes or hours, also get small batches, no dropout, a high rate, and rows
    of 32 tokens before rows of 128: who looks at what is learnt for every position anew, and 32 are soon learnt.
    """
    if profile == "paper":
        return {}
    anywhere = {
        "task.masking.rate": 0.3,
        "encoder.attention_dropout": 0.0,
        "encoder.first_positions": "sinusoids",
    }
    if encoder.hidden_size > _SMALL_WIDTH:
        return anywhere
    return {
        **anywhere,
        "seq_length": 32,
        "long_seq_length": 128,
        "long_share": 0.3,
        "batch_size": 64,
        "optimizer.lr": _RATES.get(encoder.hidden_size, 1e-3),
        "optimizer.bias_correction": True,
        "schedule.warmup": 0.05,
        "schedule.decay": "linear",
        "encoder.dropout": 0.0,
        "encoder.initializer_range": round(initializer_range(encoder.hidden_size), 4),
    }


def initializer_range(hidden_size: int) -> float:
    """The standard deviation with which a layer of any width passes on as much as BERT-base's, of 0.02 at 768."""
    return 0.02 * math.sqrt(768 / hidden_size)
