"""Options of the verbs as settings of a run."""

from __future__ import annotations

from bertkit.config.settings import Setting


def given_settings(**options: object) -> list[Setting]:
    """Settings for the options that are not None; each names its option as its origin."""
    return [
        Setting(path, value, f"--{path.rpartition('.')[2].replace('_', '-')}")
        for path, value in options.items()
        if value is not None
    ]
