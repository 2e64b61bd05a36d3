"""Errors as every client reads them: one sentence, in the body that the client's protocol expects and in a header."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from bertkit.escaping import printable

Dialect = Literal["flat", "nested"]
"""``flat`` is ``{"error": "sentence", ...}`` of Hugging Face and TEI; ``nested`` ``{"error": {"message": ...}}`` of
OpenAI and Cohere."""

_KINDS: Mapping[int, str] = {
    400: "Malformed",
    401: "Unauthorized",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    422: "Validation",
    424: "Backend",
    429: "Overloaded",
    500: "Internal",
    503: "Unhealthy",
    504: "Timeout",
    505: "HttpVersion",
}
"""The stable name of what went wrong, by status; TEI's names where it has one."""

_OPENAI_TYPES: Mapping[int, str] = {401: "authentication_error", 429: "rate_limit_error"}
_HEADER_LENGTH = 300

LONGEST_MESSAGE = 2000
"""Characters. A message may quote a name of 2 MB from the body, which would hold up the event loop for seconds."""


class ServerError(Exception):
    """What a client did wrong, or why it has to wait.

    ``field`` is the place in the body, such as ``inputs[3]``. ``hint``, a sentence, says what to do; it follows the
    message and is a field of its own as well. ``kind`` replaces the usual name of the status, and ``code`` that in
    OpenAI's body. ``retry_after`` are seconds. With ``close`` the connection is not used again.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        kind: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        close: bool = False,
    ) -> None:
        self.hint = None if hint is None else _one_line(hint)
        self.message = f"{_one_line(message)} {self.hint or ''}".strip()
        super().__init__(self.message)
        self.status = status
        self.field = field
        self.kind = kind or _KINDS.get(status, "Error")
        self.code = code or self.kind
        self.retry_after = retry_after
        self.close = close

    def body(self, dialect: Dialect) -> dict[str, object]:
        """The body in one of the two forms."""
        if dialect == "flat":
            found = {"field": self.field, "hint": self.hint}
            known = {name: text for name, text in found.items() if text is not None}
            return {"error": self.message, "error_type": self.kind, **known}
        details = {
            "message": self.message,
            "type": "server_error" if self.status >= 500 else _OPENAI_TYPES.get(self.status, "invalid_request_error"),
            "param": self.field,
            "code": self.code,
        }
        return {"message": self.message, "error": details}

    def headers(self) -> dict[str, str]:
        """``X-Error-Message``, which ``huggingface_hub`` shows, and when to try again."""
        sentence = self.message.encode("ascii", "backslashreplace").decode("ascii")[:_HEADER_LENGTH]
        headers = {"x-error-message": sentence}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after)))
            headers["retry-after-ms"] = str(max(1, math.ceil(1000 * self.retry_after)))
        if self.close:
            headers["connection"] = "close"
        if self.status == 401:
            # Chromium reads the first alone, and asks for a password where it is Basic.
            headers["www-authenticate"] = 'Basic realm="bertkit", Bearer realm="bertkit"'
        return headers


def _one_line(text: str) -> str:
    return printable(" ".join(text[:LONGEST_MESSAGE].split()))


def malformed(message: str, field: str | None = None) -> ServerError:
    """A body that cannot be read, or that is empty (400)."""
    return ServerError(400, message, field=field)


def invalid(message: str, field: str | None = None, hint: str | None = None) -> ServerError:
    """A field with a value that cannot be used (422)."""
    return ServerError(422, message, field=field, hint=hint)


def unable(message: str, hint: str | None = None) -> ServerError:
    """Something that this model cannot do (424)."""
    return ServerError(424, message, hint=hint)


def overloaded(seconds: float, *, close: bool = False) -> ServerError:
    """More requests than the server takes (429); it expects to have room after ``seconds``."""
    return ServerError(429, "Model is overloaded", retry_after=seconds, close=close)


def ended() -> ServerError:
    """The thread of the models has ended, by a mistake in the server (503)."""
    return ServerError(503, "the thread of the models has ended: start the server again")


def too_late() -> ServerError:
    """The deadline of a request is over (504)."""
    return ServerError(504, "the request was not answered in time", retry_after=1.0)


def internal() -> ServerError:
    """A mistake in the server itself, of which the log says more (500)."""
    return ServerError(500, "internal error")


def loading() -> ServerError:
    """The models are not in memory yet, or have not computed once (503)."""
    return ServerError(503, "the models are being loaded", retry_after=1.0)


def stopping() -> ServerError:
    """The server has had a signal to stop (503)."""
    return ServerError(503, "the server is stopping", retry_after=1.0, close=True)
