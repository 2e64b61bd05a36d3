"""The settings of a pre-training task that its objectives read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bertkit.errors import usage_error


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How many tokens are selected for prediction and what replaces them (paper, section 3.1).

    ``rate`` is the share of a row that is selected. With ``final_rate`` it changes linearly to that over the run: early
    steps learn from more tokens, late ones from more intact text. Of the selected tokens the share ``mask`` becomes
    [MASK], ``random`` becomes a random token of the vocabulary and ``keep`` stays. ``whole_word`` selects all subwords
    of a word or none. ``max_predictions`` limits the selected tokens of a row (the paper's code: 20 at 128 tokens, 77
    at 512).
    """

    rate: float = 0.15
    final_rate: float | None = None
    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1
    whole_word: bool = False
    max_predictions: int | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "mask", "random", "keep"):
            _check_share(name, getattr(self, name))
        if self.final_rate is not None:
            _check_share("final_rate", self.final_rate)
        if abs(self.mask + self.random + self.keep - 1) > 1e-6:
            raise usage_error(
                f"masking mask {self.mask} + random {self.random} + keep {self.keep} is "
                f"{self.mask + self.random + self.keep:g}; the three must add up to 1."
            )
        if self.max_predictions is not None and self.max_predictions < 1:
            raise usage_error(f"masking max_predictions is {self.max_predictions}; it must be 1 or more.")

    def at(self, progress: float) -> Masking:
        """The constant masking when the share ``progress`` of the schedule is done."""
        if self.final_rate is None:
            return self
        return replace(self, rate=self.rate + (self.final_rate - self.rate) * progress, final_rate=None)


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise usage_error(f"masking {name} is {share}; it must be between 0 and 1.")


@dataclass(frozen=True, kw_only=True)
class ObjectiveSettings:
    """Settings by the objective that reads them; other objectives ignore them.

    ``masking`` is for ``mlm``. ``targets`` and ``samples`` are for ``bilm``: it predicts the first ``targets`` words of
    the vocabulary, in training by a softmax over the right word and ``samples`` random ones; None means all words.
    """

    masking: Masking = field(default_factory=Masking)
    targets: int | None = None
    samples: int | None = None
