"""The verbs to start with: quickstart and doctor."""

from __future__ import annotations

from pathlib import Path

from bertkit.api.verb import verb
from bertkit.options.start import DoctorOptions, QuickstartOptions
from bertkit.quick_start.report import QuickstartResult
from bertkit.quick_start.run import quickstart as run_quickstart
from bertkit.report.doctor import Diagnosis, examine
from bertkit.report.progress import Progress


@verb(QuickstartOptions)
def quickstart(options: QuickstartOptions) -> QuickstartResult:
    """The scores of every start, such as pre-trained and random weights, and the folder of the models."""
    with Progress(options.progress) as bar:
        return run_quickstart(Path(options.output), minutes=options.minutes, progress=bar)


@verb(DoctorOptions)
def doctor(options: DoctorOptions) -> Diagnosis:
    """One field per line of the report."""
    return examine()
