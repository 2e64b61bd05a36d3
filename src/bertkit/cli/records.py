"""The verbs that show the record of a run: track and config show."""

from __future__ import annotations

from pathlib import Path

import bertkit
from bertkit.cli.output import show_json, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import count_of
from bertkit.options.records import ConfigShowOptions, TrackOptions


def track(options: TrackOptions, *, verbosity: Verbosity) -> None:
    """Write the metrics of a run for TensorBoard."""
    count = bertkit.track(**vars(options))
    folder = Path(options.run) / "tensorboard"
    verbosity.say(f"{count_of(count, 'record')} in {folder}")
    verbosity.suggest("tensorboard", "--logdir", folder)


def config_show(options: ConfigShowOptions, *, origin: bool, json: bool) -> None:
    """Show the settings of a run."""
    settings = bertkit.config_show(**vars(options))
    if json:
        show_json(settings)
    elif origin:
        show_table(("setting", "value", "origin"), [(each.path, repr(each.value), each.origin) for each in settings])
    else:
        show_table(("setting", "value"), [(each.path, repr(each.value)) for each in settings])
