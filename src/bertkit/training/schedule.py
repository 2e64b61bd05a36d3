"""Learning-rate schedules: linear warm-up, then decay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from bertkit.ranges import Share, ShareAboveZero, check_ranges


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Warm-up and decay of the learning rate.

    ``warmup`` is a share of all steps, or of the time (the paper's 10,000 of 1,000,000 is 0.01). ``decay`` is one of

    * ``bert``: linear to 0, counted from step 0 as in google-research/bert ``optimization.py``; so the learning rate
      drops by the share of the warm-up where the warm-up ends;
    * ``linear``: linear to 0, counted from the end of the warm-up, without that drop;
    * ``cosine``: half a cosine wave from the end of the warm-up to 0 (GPT);
    * ``constant``: no decay;
    * ``late``: constant, then linear to 0 over the last ``decay_share`` (Haegele et al., arXiv 2405.18392), or from the
      end of a longer warm-up on.
    """

    warmup: Share = 0.01
    decay: Literal["bert", "linear", "cosine", "constant", "late"] = "bert"
    decay_share: ShareAboveZero = 0.2

    def __post_init__(self) -> None:
        check_ranges(self)

    def needs(self) -> dict[str, str]:
        """The settings that these ones switch off, and what would switch them on."""
        return {} if self.decay == "late" else {"decay_share": "schedule.decay=late"}


def whole_steps(share: float, total: int) -> int:
    """The number of whole steps in this share of ``total``: 29 of 100 for 0.29, although 0.29 * 100 is below 29."""
    return math.floor(share * total + 1e-9)


def lr_factor(config: ScheduleConfig, done: float, total: float) -> float:
    """What to multiply the peak learning rate by after ``done`` of ``total`` steps or seconds: from 0 to 1."""
    warmup = config.warmup * total
    if isinstance(total, int):
        warmup = whole_steps(config.warmup, total)
    if done < warmup:
        return done / warmup
    if config.decay == "constant":
        return 1.0
    if config.decay == "late":
        decay = min(config.decay_share * total, total - warmup)
        return min(1.0, max(0.0, (total - done) / decay)) if decay > 0 else 1.0
    begin = 0 if config.decay == "bert" else warmup
    # A run of one step may have no step after the warm-up.
    left = max(0.0, (total - done) / (total - begin)) if total > begin else 1.0
    return (1 - math.cos(math.pi * left)) / 2 if config.decay == "cosine" else left
