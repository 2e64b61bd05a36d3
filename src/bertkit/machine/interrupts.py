"""Ctrl-C, SIGTERM and SIGHUP: the first signal asks to stop after the current step, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""SIGHUP is what a closed terminal sends."""

_Handler = Callable[[int, FrameType | None], object] | int | None
"""What ``signal.signal`` takes and returns."""


class Interrupted(KeyboardInterrupt):
    """A job stopped on request and saved its state, so it can be resumed. ``exit_code`` is 130, 143 or 129.

    As a ``KeyboardInterrupt`` it also ends what catches every ``Exception``, such as a search of scikit-learn.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class Interrupts:
    """A context in which ``requested`` changes from 0 to the number of the first signal that arrives.

    With ``distributed`` (several processes under torchrun) a second signal has no effect: a Ctrl-C arrives twice,
    once from the terminal and once from torchrun, which itself kills any process that takes longer than 30 s.
    torchrun also signals the others as soon as one process fails, so after an error signals stay ignored: this process
    still has to print its own message.
    """

    def __init__(self, *, distributed: bool = False) -> None:
        self.requested = 0
        self._distributed = distributed
        self._previous: dict[int, _Handler] = {}

    def __enter__(self) -> Interrupts:
        # Python delivers signals to the main thread only; another thread (a notebook, a server) cannot catch any.
        if threading.current_thread() is threading.main_thread():
            ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # by nohup, to go on without the terminal
            heard = [number for number in _SIGNALS if number != signal.SIGHUP or not ignored]
            self._previous = {number: signal.signal(number, self._handle) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._distributed and error:
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = self.requested or number
        if self._distributed:
            return
        for each, handler in self._previous.items():
            signal.signal(each, handler)
        self._previous = {}
