"""The settings of a pre-training task that its objectives read."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertkit.errors import usage_error


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How many tokens are selected for prediction and what replaces them (paper, section 3.1).

    ``rate`` is the share of a row that is selected. Of the selected tokens the share ``mask`` becomes [MASK],
    ``random`` becomes a random token of the vocabulary and ``keep`` stays. ``whole_word`` selects all subwords of a
    word or none. ``max_predictions`` limits the selected tokens of a row (the paper's code: 20 at 128 tokens, 77 at
    512).
    """

    rate: float = 0.15
    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1
    whole_word: bool = False
    max_predictions: int | None = None

    def __post_init__(self) -> None:
        for name in ("rate", "mask", "random", "keep"):
            if not 0 <= getattr(self, name) <= 1:
                raise usage_error(f"masking {name} is {getattr(self, name)}; it must be between 0 and 1.")
        if abs(self.mask + self.random + self.keep - 1) > 1e-6:
            raise usage_error(
                f"masking mask {self.mask} + random {self.random} + keep {self.keep} is "
                f"{self.mask + self.random + self.keep:g}; the three must add up to 1."
            )
        if self.max_predictions is not None and self.max_predictions < 1:
            raise usage_error(f"masking max_predictions is {self.max_predictions}; it must be 1 or more.")


@dataclass(frozen=True, kw_only=True)
class ObjectiveSettings:
    """Settings by the objective that reads them; other objectives ignore them.

    ``masking`` is for ``mlm``. ``targets`` and ``samples`` are for ``bilm``: it predicts the first ``targets`` words of
    the vocabulary, in training by a softmax over the right word and ``samples`` random ones; None means all words.
    """

    masking: Masking = field(default_factory=Masking)
    targets: int | None = None
    samples: int | None = None
