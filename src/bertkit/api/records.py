"""The verbs that show the record of a run: track and config_show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bertkit.api.verb import verb
from bertkit.config.settings import Setting, settings_of
from bertkit.options.records import ConfigShowOptions, TrackOptions
from bertkit.report.tracking import replay
from bertkit.runs import read_run


@verb(TrackOptions)
def track(options: TrackOptions) -> int:
    """The number of records that were written."""
    return replay(Path(options.run), follow=options.follow)


@verb(ConfigShowOptions)
def config_show(options: ConfigShowOptions) -> list[Setting]:
    """Every setting of the run: ``path``, ``value`` and ``origin``."""
    record = read_run(Path(options.run))
    known = record["origins"]
    settings = settings_of(record["run"], "default")
    return [replace(setting, origin=known.get(setting.path, setting.origin)) for setting in settings]
