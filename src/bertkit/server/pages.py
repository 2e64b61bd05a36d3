"""HTML from the templates beside this module; every value is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bertkit.escaping import printable
from bertkit.server.call import Call
from bertkit.server.endpoint import Handler, Reply
from bertkit.server.errors import ServerError


def page_reply(page: bytes, status: int = 200, *, policy: str = "form-action 'self'; base-uri 'none'") -> Reply:
    """A page that loads nothing. ``policy`` ends its Content-Security-Policy: no script, and forms to this server."""
    headers = {
        "content-security-policy": f"default-src 'none'; style-src 'unsafe-inline'; {policy}",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
    return Reply(page, "text/html; charset=utf-8", status, headers)


def for_browsers(handle: Handler) -> Handler:
    """``handle`` with its errors as a page where the client is a browser."""

    async def answer(call: Call, body: Any) -> object:
        try:
            return await handle(call, body)
        except ServerError as error:
            if "text/html" not in call.headers.get("accept", ""):
                raise
            return page_reply(render("error.html", message=error.message), error.status)

    return answer


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bertkit.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = lambda value: printable(str(value))
    environment.filters["printable_lines"] = lambda value: "\n".join(map(printable, str(value).split("\n")))
    environment.globals["lines"] = list_lines
    return environment


def list_lines(text: str) -> list[str]:
    """The lines of a field that have a visible character."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def render(template: str, **values: object) -> bytes:
    """A template with these values, as UTF-8."""
    return _environment().get_template(template).render(**values).encode("utf-8", "replace")
