"""The verbs to start with: quickstart and doctor."""

from __future__ import annotations

from bertkit.cli.output import show_json, show_lines
from bertkit.cli.verbosity import Verbosity
from bertkit.options.start import DoctorOptions, QuickstartOptions


def quickstart(options: QuickstartOptions, *, verbosity: Verbosity) -> None:
    """Make a small model from scratch and show what it can do."""
    from bertkit import api

    show_lines(api.quickstart(**vars(options)).lines())


def doctor(options: DoctorOptions, *, json: bool) -> None:
    """Show what this machine offers."""
    from bertkit import api

    diagnosis = api.doctor(**vars(options))
    show_json(diagnosis) if json else show_lines(diagnosis.lines())
