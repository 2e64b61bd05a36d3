from __future__ import annotations

import pytest

from bertkit.report import doctor


def test_a_diagnosis_measures_and_names_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTKIT_DATA", "some folder")
    found = doctor.examine()
    assert found.cores >= 1
    assert min(found.gflops.values()) > 0
    assert found.installed["torch"].startswith("2.")
    shown = "\n".join(found.lines())
    assert "some folder" in shown
    assert found.precision in shown


def test_what_is_missing_comes_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_EXTRAS", {"no_such_library": "parquet"})
    monkeypatch.setattr(doctor, "measure_gflops", lambda device, dtype: 1.0)
    assert "missing     no_such_library: pip install 'bertkit[parquet]'" in doctor.examine().lines()


def test_a_system_without_proc_says_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_memory", lambda: (None, None))
    monkeypatch.setattr(doctor, "measure_gflops", lambda device, dtype: 1.0)
    assert "memory      unknown, unknown of it free" in doctor.examine().lines()
