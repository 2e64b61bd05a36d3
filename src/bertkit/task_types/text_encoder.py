"""From texts and pairs of texts to features: cut, in windows, or in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bertkit.batch import Feature, Label
from bertkit.contracts import Tokenizer
from bertkit.data.features import assemble, assemble_windows, stack
from bertkit.errors import usage_error
from bertkit.task_types.text_reader import TextExample


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """``[CLS] A [SEP]``, or ``[CLS] A [SEP] B [SEP]`` (``pair``), with at most ``max_length`` tokens.

    With a ``stride`` a longer text becomes windows that begin every ``stride`` tokens; without one its end is cut off.
    With ``both_orders`` a feature has two rows: the pair, and the pair with its texts exchanged.
    """

    name: str
    pair: bool
    max_length: int
    stride: int
    both_orders: bool

    def __post_init__(self) -> None:
        if self.both_orders and not self.pair:
            raise usage_error(f"both_orders is for pairs of texts; an example of {self.name} is one text.")
        if self.both_orders and self.stride:
            raise usage_error(f"both_orders and stride cannot be combined: {self.name} is read in windows.")
        if not 0 <= self.stride <= max(self.widest_stride, 0):
            raise usage_error(
                f"stride is {self.stride}, but a window of {self.max_length} tokens holds {self.widest_stride} of the "
                "text: tokens between two windows would be lost. Choose a stride up to that."
            )

    @property
    def widest_stride(self) -> int:
        """The tokens of a long text in one window; for a pair, half of the window is left to the other text."""
        available = self.max_length - (3 if self.pair else 2)
        return available - available // 2 if self.pair else available

    def encode(self, example: TextExample, tokenizer: Tokenizer, labels: Mapping[str, Label]) -> list[Feature]:
        """One feature, or several windows, each with ``labels``."""
        if self.pair != (example.second is not None):
            expected, found = ("two texts", "one") if self.pair else ("one text", "two")
            raise usage_error(f"an example of {self.name} is {expected}; example {example.id} has {found}.")
        texts, length = (example.first, example.second), self.max_length
        if self.stride:
            return assemble_windows(tokenizer, *texts, max_length=length, stride=self.stride, labels=labels)
        if self.both_orders and example.second is not None:
            orders = (texts, (example.second, example.first))
            rows = [assemble(tokenizer, *pair, max_length=length) for pair in orders]
            return [replace(stack(rows, labels=labels), num_truncated=rows[0].num_truncated)]
        return [assemble(tokenizer, *texts, max_length=length, labels=labels)]

    def advise_on_truncation(self) -> str:
        """How a text that is too long can be read to its end."""
        if self.stride:
            return f"Longer windows: --set task.max_length={2 * self.max_length}"
        return f"Read them whole: --set task.stride={min(self.max_length // 2, self.widest_stride)}"
