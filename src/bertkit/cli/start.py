"""The verbs to start with: quickstart and doctor."""

from __future__ import annotations

import bertkit
from bertkit.cli.output import show_json, show_lines
from bertkit.options.start import DoctorOptions, QuickstartOptions


def quickstart(options: QuickstartOptions, *, json: bool) -> None:
    """Make a small model from scratch and show what it can do."""
    made = bertkit.quickstart(**vars(options))
    show_json(made) if json else show_lines(made.lines())


def doctor(options: DoctorOptions, *, json: bool) -> None:
    """Show what this machine offers."""
    diagnosis = bertkit.doctor(**vars(options))
    show_json(diagnosis) if json else show_lines(diagnosis.lines())
