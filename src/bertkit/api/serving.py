"""The verb that puts models behind HTTP: serve."""

from __future__ import annotations

from bertkit import optional
from bertkit.api.verb import verb
from bertkit.options.serving import ServeOptions

_LIBRARIES = ("starlette", "uvicorn", "httptools", "prometheus_client")


@verb(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Nothing: it returns after a signal to stop."""
    for library in _LIBRARIES:
        optional.require(library, extra="serve", purpose="serve", library=library.replace("_", "-"))
    # Loaded here because its modules import these libraries, which no other verb needs.
    optional.load("bertkit.server.run").serve(options)
