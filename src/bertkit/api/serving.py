"""The verb that puts models behind HTTP: serve."""

from __future__ import annotations

from bertkit import optional
from bertkit.api.verb import verb
from bertkit.errors import usage_error
from bertkit.options.serving import ServeOptions

_LIBRARIES = ("starlette", "uvicorn", "prometheus_client")


@verb(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Nothing: it returns after a signal to stop."""
    if not options.models:
        raise usage_error("serve needs a model: bertkit serve MODEL.")
    for library in _LIBRARIES:
        optional.require(library, extra="serve", purpose="serve", library=library.replace("_", "-"))
    # Loaded here because its modules import these libraries, which no other verb needs.
    optional.load("bertkit.server.run").serve(options)
