"""Results of a sweep: one record per point, and the table of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bertkit.config.records import to_plain
from bertkit.finetuning.results import read_results
from bertkit.report.tables import markdown_table
from bertkit.results import Result
from bertkit.runs import read_end
from bertkit.storage.atomic import write_json, write_text


@dataclass(frozen=True, kw_only=True, repr=False)
class PointResult(Result):
    """A finished point: its settings, and the dev score of every seed. ``failed`` is the error if there are none.

    ``verdict`` compares the mean with the baselines.
    """

    settings: dict[str, str]
    folder: Path
    scores: list[float] = field(default_factory=list)
    mean: float | None = None
    sd: float | None = None
    best: float | None = None
    seconds: float = 0.0
    failed: str = ""
    verdict: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class SweepResult(Result):
    """All finished points, the best mean first."""

    folder: Path
    metric: str
    points: list[PointResult]

    @property
    def best(self) -> PointResult | None:
        """The point with the best mean; None if all failed."""
        return next((point for point in self.points if point.mean is not None), None)

    def header(self) -> list[str]:
        """The columns of the table."""
        return [*self.points[0].settings, f"mean {self.metric}", "sd", "best", "seconds"]

    def rows(self) -> list[list[object]]:
        """The rows of the table, one per point."""
        return [
            [*each.settings.values(), _or_dash(each.mean), _or_dash(each.sd), _or_dash(each.best), round(each.seconds)]
            for each in self.points
        ]


def read_point(folder: Path, settings: dict[str, str]) -> PointResult | None:
    """The result in the run folder of a point; None if it is not finished."""
    end = read_end(folder)
    if end.failure:
        return PointResult(settings=settings, folder=folder, failed=end.failure)
    if not end.is_done:
        return None
    result = read_results(folder)
    return PointResult(
        settings=settings,
        folder=folder,
        scores=[each.scores[result.metric] for each in result.seeds],
        mean=result.mean,
        sd=result.sd,
        best=result.best.scores[result.metric],
        seconds=sum(each.seconds for each in result.seeds),
        verdict=result.verdict(),
    )


def write_table(result: SweepResult) -> None:
    """Write ``sweep.json`` and ``sweep.md``."""
    best = result.best.folder.name if result.best else None
    write_json(result.folder / "sweep.json", {"best": best, **to_plain(result)})
    if result.points:
        table = markdown_table(result.header(), result.rows())
        write_text(result.folder / "sweep.md", f"# Sweep\n\n{table}")


def format_settings(settings: Mapping[str, str]) -> str:
    """``lr=3e-5 batch_size=16``."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _or_dash(number: float | None) -> object:
    return "-" if number is None else number
