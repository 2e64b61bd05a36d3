"""The verb that puts models behind HTTP: serve."""

from __future__ import annotations

import bertkit
from bertkit.cli.verbosity import Verbosity
from bertkit.options.serving import ServeOptions


def serve(options: ServeOptions, *, verbosity: Verbosity) -> None:
    """Serve until a signal to stop."""
    bertkit.serve(**vars(options))
