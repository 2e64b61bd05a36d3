"""The log: one line per event, whatever the inputs are."""

from __future__ import annotations

import io
import json
import logging
import os

import pytest

from bertkit.server import logs


def test_no_input_can_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    evil = 'a\n{"event":"forged"}\r\x1b[31m\u2028\u202e'
    logs.log_event("request", path=evil)
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert not any(ord(each) < 32 for each in line.rstrip("\n"))
    assert json.loads(line)["path"] == evil


def test_messages_of_uvicorn_have_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    others = logging.getLogger("asyncio")
    known = others.handlers, others.propagate, others.level
    logger = logging.getLogger("uvicorn")
    before = logger.handlers, logger.propagate, logger.level, logging.getLogger(logs.__name__).level
    try:
        logs.set_up(quiet=False)
        logging.getLogger("uvicorn.error").warning("Invalid HTTP\nrequest received.")
        assert json.loads(capsys.readouterr().err)["message"] == "Invalid HTTP\nrequest received."
        try:
            raise ValueError("of a stream")
        except ValueError as error:
            logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=error)
        assert "ValueError: of a stream" in json.loads(capsys.readouterr().err)["traceback"]
        logs.set_up(quiet=True)
        logging.getLogger("uvicorn.error").warning("again")
        assert capsys.readouterr().err == ""
    finally:
        logger.handlers, logger.propagate, logger.level = before[:3]
        others.handlers, others.propagate, others.level = known
        logging.getLogger(logs.__name__).setLevel(before[3])


def test_no_request_waits_for_a_reader_of_the_log_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stderr, os.fdopen(reading) as reader:
        monkeypatch.setattr("sys.stderr", stderr)
        for number in range(2000):  # a pipe holds 64 KB
            logs.log_event("request", path="a" * 100, number=number)
        monkeypatch.undo()
        os.set_blocking(reading, False)
        first, *_ = reader.read(5000).splitlines()
    assert json.loads(first)["number"] == 0


def test_a_reader_of_the_log_that_has_ended_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Closed())
    logs.log_event("request", status=404)
