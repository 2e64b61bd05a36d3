"""The verb that puts models behind HTTP: serve."""

from __future__ import annotations

import bertkit
from bertkit.options.serving import ServeOptions


def serve(options: ServeOptions) -> None:
    """Serve until a signal to stop."""
    bertkit.serve(**vars(options))
