"""The verbs that exchange models with other libraries: import and export."""

from __future__ import annotations

import bertkit
from bertkit.cli.output import show_json, show_lines
from bertkit.cli.verbosity import Verbosity
from bertkit.options.exchange import ExportOptions, ImportOptions


def import_(options: ImportOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Convert a model to a model folder, and show what was found in it."""
    found = bertkit.import_(**vars(options))
    show_json(found) if json else show_lines(found.lines())
    if found.is_for_a_task:
        verbosity.suggest("bertkit", "predict", options.output, "NEW.csv", "-o", "PREDICTIONS.csv")
    else:
        verbosity.suggest("bertkit", "finetune", "YOUR.csv", "--model", options.output, "-o", "RUN")


def export(options: ExportOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Write a model for another library, and show what was written."""
    written = bertkit.export(**vars(options))
    show_json(written) if json else show_lines(written.lines())
