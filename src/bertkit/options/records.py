"""Options of the verbs that show the record of a run: track and config show."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertkit.options.inputs import RunPath
from bertkit.options.job import Options


@dataclass(frozen=True, kw_only=True)
class TrackOptions(Options):
    """Write the metrics of a run for TensorBoard, into RUN/tensorboard."""

    run: RunPath = field(kw_only=False)
    """Run folder."""
    follow: bool = False
    """Continue until the run has ended."""


@dataclass(frozen=True, kw_only=True)
class ConfigShowOptions(Options):
    """Show the settings of a run, and where each came from."""

    run: RunPath = field(kw_only=False)
    """Run folder."""
