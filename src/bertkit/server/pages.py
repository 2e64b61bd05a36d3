"""HTML from the templates beside this module; every value is escaped."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from bertkit.escaping import printable

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""Of pages that run no script and load nothing."""


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
    environment.globals["lines"] = lambda text: [line.strip() for line in text.splitlines() if line.strip()]
    return environment


def render(template: str, **values: object) -> bytes:
    """A template with these values, as UTF-8."""
    return _environment().get_template(template).render(**values).encode("utf-8", "replace")
