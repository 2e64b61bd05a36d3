"""The first signal requests a stop, the second stops at once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from bertkit.machine.interrupts import Interrupted, Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_a_request(number: signal.Signals, request: pytest.FixtureRequest) -> None:
    # A job that was started with nohup, or in the background, ignores some signals; Interrupts then leaves them alone.
    inherited = signal.signal(number, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(number, inherited))
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        assert interrupts.requested == 0
        os.kill(os.getpid(), number)
        assert interrupts.requested == number
        assert signal.getsignal(number) == before
    assert signal.getsignal(number) == before


def test_the_second_ctrl_c_stops_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.requested == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_do_not_change_signal_handlers() -> None:
    before = signal.getsignal(signal.SIGINT)

    def work() -> None:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) == before

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_exit_codes_are_those_of_a_shell(number: int, code: int) -> None:
    assert Interrupted(number, "stopped").exit_code == code


def test_a_loop_that_catches_exceptions_ends_too() -> None:
    attempts = 0
    with pytest.raises(KeyboardInterrupt, match="stopped in seed 0"):
        for _ in range(3):
            try:
                attempts += 1
                raise Interrupted(signal.SIGINT, "stopped in seed 0")
            except Exception:
                continue
    assert attempts == 1
