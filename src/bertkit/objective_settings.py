"""The settings of a pre-training task that its objectives read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bertkit.errors import usage_error
from bertkit.ranges import Length, Share, ShareAboveZero, VocabularySize, check_ranges


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How many tokens are selected for prediction and what replaces them (paper, section 3.1).

    ``rate`` is the share of a row that is selected. With ``final_rate`` it changes linearly to that: early
    steps learn from more tokens, late ones from more intact text. It does so over each schedule of a run; new heads and
    ``long_phase=restart`` have schedules of their own. Of the selected tokens the share ``mask`` becomes
    [MASK], ``random`` becomes a random token of the vocabulary and ``keep`` stays. ``whole_word`` selects all subwords
    of a word or none. ``max_predictions`` limits the selected tokens of a row (the paper's code: 20 at 128 tokens, 77
    at 512).
    """

    rate: ShareAboveZero = 0.15
    final_rate: ShareAboveZero | None = None
    mask: Share = 0.8
    random: Share = 0.1
    keep: Share = 0.1
    whole_word: bool = False
    max_predictions: Length | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if abs(self.mask + self.random + self.keep - 1) > 1e-6:
            raise usage_error(
                f"masking mask {self.mask} + random {self.random} + keep {self.keep} is "
                f"{self.mask + self.random + self.keep:g}; the three must add up to 1."
            )

    def at(self, progress: float) -> Masking:
        """The constant masking when the share ``progress`` of the schedule is done."""
        if self.final_rate is None:
            return self
        return replace(self, rate=self.rate + (self.final_rate - self.rate) * progress, final_rate=None)


@dataclass(frozen=True, kw_only=True)
class ObjectiveSettings:
    """Settings by the objective that reads them; other objectives ignore them.

    ``masking`` is for ``mlm``. ``targets`` and ``samples`` are for ``bilm``: it predicts the first ``targets`` words of
    the vocabulary, in training by a softmax over the right word and ``samples`` random ones; None means all words.
    """

    masking: Masking = field(default_factory=Masking)
    targets: VocabularySize | None = None
    samples: VocabularySize | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
