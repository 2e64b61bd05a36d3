"""The bodies and headers of errors."""

from __future__ import annotations

import pytest

from bertkit.server import errors
from bertkit.server.errors import LONGEST_MESSAGE, ServerError, overloaded


def test_both_forms_say_the_same() -> None:
    error = ServerError(422, "too\nlong", field="inputs[3]")
    assert error.body("flat") == {"error": "too long", "error_type": "Validation", "field": "inputs[3]"}
    nested = error.body("nested")
    assert nested["message"] == "too long"
    assert nested["error"] == {
        "message": "too long",
        "type": "invalid_request_error",
        "param": "inputs[3]",
        "code": "Validation",
    }


def test_a_hint_is_part_of_the_sentence_and_a_field() -> None:
    error = ServerError(422, "too long.", field="inputs", hint="Shorten\nit.")
    body = {"error": "too long. Shorten it.", "error_type": "Validation", "field": "inputs", "hint": "Shorten it."}
    assert error.body("flat") == body
    assert error.body("nested")["message"] == "too long. Shorten it."
    assert error.headers() == {"x-error-message": "too long. Shorten it."}


def test_a_fault_of_the_server_is_not_called_one_of_the_request() -> None:
    types = [ServerError(status, "x").body("nested")["error"]["type"] for status in (401, 429, 500, 503, 504)]  # type: ignore[index]
    assert types == ["authentication_error", "rate_limit_error", *["server_error"] * 3]


def test_the_header_cannot_be_forged_or_broken_by_the_message() -> None:
    header = ServerError(404, 'no "flüss\r\nset-cookie: a=b\x1b[31m"').headers()["x-error-message"]
    assert header.isascii()
    assert header.isprintable()
    assert len(ServerError(404, "a" * 999).headers()["x-error-message"]) == 300


def test_a_client_is_told_when_to_come_back() -> None:
    assert overloaded(0.25).headers() == {
        "x-error-message": "Model is overloaded",
        "retry-after": "1",
        "retry-after-ms": "250",
    }


def test_a_message_is_cut_before_it_is_made_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def note(text: str) -> str:
        lengths.append(len(text))
        return text

    monkeypatch.setattr(errors, "printable", note)
    error = ServerError(422, "\u00e9" * 1_000_000, hint="y" * 1_000_000)
    assert max(lengths) == LONGEST_MESSAGE
    assert error.message.endswith("\u00e9 " + "y" * LONGEST_MESSAGE)
