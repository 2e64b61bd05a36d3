"""What came of the points of a sweep, and the table of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bertkit import config
from bertkit.finetuning.results import FinetuneResult
from bertkit.report.tables import markdown_table
from bertkit.storage.atomic import read_json, write_file, write_json

FAILED = "failed: "
"""How the ``ended`` of a run begins that came to nothing."""


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """A finished point: its settings, and the dev score of every seed. ``failed`` says why there is none."""

    settings: dict[str, str]
    folder: Path
    scores: list[float] = field(default_factory=list)
    mean: float | None = None
    sd: float | None = None
    best: float | None = None
    seconds: float = 0.0
    failed: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """Every point, the best mean first."""

    folder: Path
    metric: str
    points: list[PointResult]

    @property
    def best(self) -> PointResult | None:
        """The point with the best mean; None when all have failed."""
        return next((point for point in self.points if point.mean is not None), None)

    def header(self) -> list[str]:
        """The columns of the table."""
        return [*self.points[0].settings, f"mean {self.metric}", "sd", "best", "seconds"]

    def rows(self) -> list[list[object]]:
        """The table: a row a point."""
        return [
            [*each.settings.values(), _or_dash(each.mean), _or_dash(each.sd), _or_dash(each.best), round(each.seconds)]
            for each in self.points
        ]


def read_point(folder: Path, settings: dict[str, str]) -> PointResult | None:
    """The result in the run folder of a point; None as long as it is not finished."""
    ended = str(read_json(folder / "run.json")["ended"]) if (folder / "run.json").exists() else ""
    if ended.startswith(FAILED):
        return PointResult(settings=settings, folder=folder, failed=ended.removeprefix(FAILED))
    if ended != "done":
        return None
    result = config.from_json(FinetuneResult, read_json(folder / "results.json"))
    return PointResult(
        settings=settings,
        folder=folder,
        scores=[each.scores[result.metric] for each in result.seeds],
        mean=result.mean,
        sd=result.sd,
        best=result.best.scores[result.metric],
        seconds=sum(each.seconds for each in result.seeds),
    )


def write_table(result: SweepResult) -> None:
    """``sweep.json`` and ``sweep.md``."""
    best = result.best.folder.name if result.best else None
    write_json(result.folder / "sweep.json", {"best": best, **config.to_json(result)})
    if result.points:
        table = f"# Sweep\n\n{markdown_table(result.header(), result.rows())}"
        write_file(result.folder / "sweep.md", lambda path: path.write_text(table, encoding="utf-8"))


def spell(settings: Mapping[str, str]) -> str:
    """``lr=3e-5 batch_size=16``."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _or_dash(number: float | None) -> object:
    return "-" if number is None else number
