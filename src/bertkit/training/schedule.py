"""The learning rate over a run: warm-up, then decay, in the forms that are in use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

_LAST_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """``warmup`` is a share of all steps (the paper's 10,000 of 1,000,000 is 0.01).

    ``bert`` counts the decay from step 0, as google-research/bert ``optimization.py`` does, so the rate
    drops by the warm-up's share where the two lines meet; ``linear`` counts it from the end of the warm-up
    and has no such joint; ``cosine`` falls from there along half a wave (GPT); ``constant`` stays up; ``late`` stays up
    too and falls in a line over the last fifth of the steps (Haegele et al., arXiv 2405.18392).
    """

    warmup: float = 0.01
    decay: Literal["bert", "linear", "cosine", "constant", "late"] = "bert"


def lr_factor(config: ScheduleConfig, step: int, total_steps: int) -> float:
    """The factor of the learning rate at ``step``, counted from 0."""
    warmup_steps = int(config.warmup * total_steps)
    if step < warmup_steps:
        return step / warmup_steps
    if config.decay == "constant":
        return 1.0
    if config.decay == "late":
        return min(1.0, (total_steps - step) / (_LAST_SHARE * total_steps))
    begin = 0 if config.decay == "bert" else warmup_steps
    left = max(0.0, (total_steps - step) / max(1, total_steps - begin))
    return (1 - math.cos(math.pi * left)) / 2 if config.decay == "cosine" else left
