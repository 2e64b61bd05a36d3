"""Options of the verbs as settings."""

from __future__ import annotations

from typing import Any

from bertkit.config import Setting


def given_settings(**options: Any) -> list[Setting]:
    """Settings for the options that were given; the option is their origin."""
    return [
        Setting(path, value, f"--{path.rpartition('.')[2].replace('_', '-')}")
        for path, value in options.items()
        if value is not None
    ]
