"""quickstart and doctor from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError
from bertkit.report.progress import Progress


def test_doctor_describes_the_machine() -> None:
    assert bertkit.doctor().cores >= 1


def test_quickstart_passes_its_options_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path, float]] = []

    def run_quickstart(output: Path, *, minutes: float, progress: Progress) -> None:
        calls.append((output, minutes))
        raise BertkitError("enough")

    monkeypatch.setattr("bertkit.api.start.run_quickstart", run_quickstart)
    with pytest.raises(BertkitError, match="enough"):
        bertkit.quickstart(output=str(tmp_path), minutes=3, progress="quiet")
    assert calls == [(tmp_path, 3)]
