"""Ctrl-C and SIGTERM: the first asks to stop after this step, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """A job that stopped on request, saved what it had and can be resumed. ``exit_code`` is 130 or 143."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class Interrupts:
    """A context in which ``requested`` turns from 0 to the number of the first signal that arrived.

    Among several processes a second signal stops nobody: torchrun passes on to all what the terminal has sent to them
    already, and ends by itself who takes longer than 30 s. It also ends the others as soon as one has failed or
    stopped, so after an error signals stay without effect: what this process has to say is still to come.
    """

    def __init__(self, *, distributed: bool = False) -> None:
        self.requested = 0
        self._distributed = distributed
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        # Python delivers signals to the main thread only; elsewhere (a notebook's worker, a server) there is
        # nothing to catch.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._distributed and error:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = self.requested or number
        if self._distributed:
            return
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._before = {}
