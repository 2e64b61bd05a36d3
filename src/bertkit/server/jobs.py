"""The work of one request: inputs for an operation of a model, the results as they come, and what they needed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

_BYTES_PER_TOKEN = 3
"""Fewer than English text has (four to five), and as many as a Chinese character has, which is a token: so the
estimate is too high rather than too low."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One input as a model reads it: ``content``, its tokens, and how many tokens of it were left out.

    An input that is read in windows, or has choices, has several rows. ``longest_row``: the tokens of its longest row
    (None: ``num_tokens``). ``limit``: the most tokens that the model reads (None: ``longest_row``).
    """

    content: Any
    num_tokens: int
    num_truncated: int = 0
    limit: int | None = None
    longest_row: int | None = None


@runtime_checkable
class Operation(Protocol):
    """What a model does with inputs of one kind. Both methods are called in the thread of the batcher."""

    def encode(self, inputs: Sequence[Any]) -> list[Encoded]:
        """Tokenize."""
        ...

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None]) -> list[Any]:
        """One result per input. ``check``, called between parts of long work, raises AbandonedError to end it."""
        ...


@dataclass(slots=True)
class Usage:
    """What a request needed: inputs, characters, tokens, and what was cut off; times in seconds.

    Parts of a request are worked on side by side, so its times are those of the part that took longest.
    """

    inputs: int = 0
    characters: int = 0
    tokens: int = 0
    truncated_inputs: int = 0
    truncated_tokens: int = 0
    tokenization_seconds: float = 0.0
    queue_seconds: float = 0.0
    inference_seconds: float = 0.0

    def add(self, other: Usage) -> None:
        """Count what a part of the request needed."""
        for each in fields(self):
            both = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, max(both) if each.name.endswith("_seconds") else sum(both))


@dataclass(eq=False, slots=True)
class Job:
    """The inputs of one request for one operation.

    ``deadline`` is a time of ``time.monotonic``. With ``truncate`` a text that is too long loses its end; without it
    the request is refused with 422. ``model`` is the name of the model, and ``usage`` the times, for the metrics.
    """

    operation: Operation
    inputs: Sequence[Any]
    deadline: float
    truncate: bool = False
    model: str = ""
    future: Future[list[Any]] = field(default_factory=Future)
    encoded: list[Encoded] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)
    results: dict[int, Any] = field(default_factory=dict)
    arrived: float = field(default_factory=time.monotonic)
    usage: Usage = field(default_factory=Usage)

    @property
    def cost(self) -> int:
        """The tokens of all inputs, estimated from their bytes before they are tokenized."""
        return sum(_measure(each, _count_bytes) // _BYTES_PER_TOKEN + 2 for each in self.inputs)

    @property
    def characters(self) -> int:
        """The characters of all inputs; a text that several of them share counts for each."""
        return sum(_measure(each, len) for each in self.inputs)


class AbandonedError(Exception):
    """Nobody waits for the results any more."""


class TooLongError(Exception):
    """Input ``number`` has ``given`` tokens, and the model reads ``limit``."""

    def __init__(self, number: int, *, limit: int, given: int) -> None:
        super().__init__(number, limit, given)
        self.number, self.limit, self.given = number, limit, given


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _measure(value: Any, size: Callable[[str], int]) -> int:
    """The size of a text, of the texts of a tuple, or of an example; its prompt is read with each choice."""
    if isinstance(value, str):
        return size(value)
    if isinstance(value, tuple):
        return sum(_measure(each, size) for each in value)
    first, second = (size(getattr(value, name, None) or "") for name in ("first", "second"))
    return first * max(1, len(getattr(value, "choices", ()))) + second
