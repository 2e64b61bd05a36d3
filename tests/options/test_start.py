"""quickstart and doctor need no input."""

from __future__ import annotations

from bertkit.options.description import list_options
from bertkit.options.start import DoctorOptions, QuickstartOptions


def test_nothing_is_required() -> None:
    assert not [option for option in list_options(QuickstartOptions) if option.required]
    assert list_options(DoctorOptions) == ()


def test_quickstart_takes_ten_minutes_by_default() -> None:
    assert QuickstartOptions().minutes == 10
