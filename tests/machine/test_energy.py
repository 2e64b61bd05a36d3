"""The energy of the processors, read from a folder like that of Linux."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.machine.energy import EnergyMeter


def write_zone(folder: Path, name: str, microjoules: int, most: int = 999_999_999) -> None:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "energy_uj").write_text(f"{microjoules}\n")
    (folder / name / "max_energy_range_uj").write_text(f"{most}\n")


def test_energy_is_that_of_all_packages_and_not_of_their_parts_again(tmp_path: Path) -> None:
    for zone in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"):
        write_zone(tmp_path, zone, 5_000_000)
    (tmp_path / "intel-rapl").mkdir()
    meter = EnergyMeter(folder=tmp_path)
    assert meter.joules == 0
    write_zone(tmp_path, "intel-rapl:0", 7_500_000)
    write_zone(tmp_path, "intel-rapl:0:0", 9_000_000)
    write_zone(tmp_path, "intel-rapl:1", 6_000_000)
    assert meter.joules == pytest.approx(3.5)


def test_a_counter_that_began_again_goes_on(tmp_path: Path) -> None:
    write_zone(tmp_path, "intel-rapl:0", 9_000_000, most=9_999_999)
    meter = EnergyMeter(before=100.0, folder=tmp_path)
    for microjoules in (500_000, 9_500_000, 1_000_000):
        write_zone(tmp_path, "intel-rapl:0", microjoules, most=9_999_999)
        joules = meter.joules
    assert joules == pytest.approx(100 + 1.5 + 9 + 1.5)


def test_a_counter_that_cannot_be_read_any_more_ends_the_measurement(tmp_path: Path) -> None:
    write_zone(tmp_path, "intel-rapl:0", 9_000_000)
    meter = EnergyMeter(folder=tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert meter.joules is None
    write_zone(tmp_path, "intel-rapl:0", 10_000_000)
    assert meter.joules is None


def test_without_counters_or_an_earlier_part_the_energy_is_not_known(tmp_path: Path) -> None:
    assert EnergyMeter(folder=tmp_path / "missing").joules is None
    write_zone(tmp_path, "intel-rapl:0", 1)
    assert EnergyMeter(before=None, folder=tmp_path).joules is None
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("")
    assert EnergyMeter(folder=tmp_path).joules is None
