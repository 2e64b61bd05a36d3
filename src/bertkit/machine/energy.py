"""The energy that the processors of this machine use, where the system tells: Linux's power capping interface.

A package has a counter of microjoules that begins again at zero after minutes to hours of work (RAPL, on processors of
Intel and AMD; Documentation/power/powercap in Linux). Most systems let only root read it; virtual machines have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_PACKAGES = "intel-rapl:[0-9]*"
"""The zones of Intel's and AMD's processors; a second colon is a part of a package."""


@dataclass(slots=True)
class EnergyMeter:
    """The joules of all packages of the machine, those of other programs included, since the meter was made.

    ``before`` are those of an earlier part of the work, None if they are not known. ``joules`` has to be read more
    often than a counter begins again.
    """

    before: float | None = 0.0
    folder: Path = POWERCAP
    _ranges: dict[Path, int] = field(init=False)
    _last: dict[Path, int] = field(init=False)
    _used: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        zones = [zone for zone in self.folder.glob(_PACKAGES) if ":" not in zone.name.removeprefix("intel-rapl:")]
        self._ranges = {zone: _read(zone / "max_energy_range_uj") for zone in zones}
        self._last = {zone: _read(zone / "energy_uj") for zone in zones}
        if any(figure < 0 for figure in (*self._ranges.values(), *self._last.values())):
            self._last = {}

    @property
    def joules(self) -> float | None:
        """The joules so far, or None if the system does not tell."""
        if not self._last or self.before is None:
            return None
        for zone, last in self._last.items():
            now = _read(zone / "energy_uj")
            if now < 0:  # the permission has gone, and with it what was used since
                self._last = {}
                return None
            self._used += (now - last) % (self._ranges[zone] + 1)
            self._last[zone] = now
        return self.before + self._used / 1e6


def _read(file: Path) -> int:
    """The number in a file of the system, or -1 if it cannot be read."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return -1
