"""Options of the verbs to start with: quickstart and doctor."""

from __future__ import annotations

from dataclasses import dataclass

from bertkit.options.job import AnyPath, ModelJobOptions, Options
from bertkit.ranges import Minutes


@dataclass(frozen=True, kw_only=True)
class QuickstartOptions(ModelJobOptions):
    """Go from raw text to a fine-tuned model, without any input and without the network.

    The text is the documentation of the Python packages on this machine.
    """

    output: AnyPath = "quickstart"
    """Folder for everything that is made."""
    minutes: Minutes = 10
    """How long it may take; with more minutes, BERT-mini is pre-trained for longer."""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """Show the device, precision, threads and memory, and which packages are installed."""
