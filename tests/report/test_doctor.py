"""The diagnosis of the machine."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bertkit.report import doctor


def test_diagnosis_shows_speed_libraries_and_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTKIT_DATA", "some folder")
    found = doctor.examine()
    assert found.cores >= 1
    assert min(found.gflops.values()) > 0
    assert found.installed["torch"].startswith("2.")
    shown = "\n".join(found.lines())
    assert "some folder" in shown
    assert f"{found.precision}, the default: {found.reason}" in shown
    assert f"bfloat16 {found.gflops['bfloat16']:,.0f} GFLOP/s" in shown


def test_missing_library_is_shown_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_list_optional", lambda: {"none-such": "serve", "no_other": "serve", "torch": "track"})
    found = doctor.examine()
    assert "missing     none-such, no_other: pip install 'bertkit[serve]'" in found.lines()
    assert found.installed["torch"]


def test_every_extra_is_known() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"test", "dev", "bench"}
    assert set(doctor._list_optional().values()) == extras


def test_memory_is_unknown_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "host_memory", lambda: (None, None))
    assert "memory      unknown, unknown of it free" in doctor.examine().lines()


def test_the_reason_for_the_device_is_shown() -> None:
    found = doctor.examine()
    assert any(line.startswith(f"device      {found.device}") and found.device_reason in line for line in found.lines())
