"""The tables of a reproduction: our figures beside the paper's, what they cost, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertkit.report.progress import describe_duration
from bertkit.report.tables import markdown_table
from bertkit.reproduction.answers import Answer
from bertkit.scores import Summary, summarize_scores

_NO_FIGURE = "–"
_POINTS = "points"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Our score of every seed, and the paper's figure. ``why`` says why there is no score of ours."""

    ours: list[float] = field(default_factory=list)
    paper: float | None = None
    why: str = ""

    @property
    def summary(self) -> Summary | None:
        """Mean and standard deviation of our scores."""
        return summarize_scores(_POINTS, self.ours) if self.ours else None

    @property
    def has_score(self) -> bool:
        """Whether there is a score of ours or of the paper."""
        return bool(self.ours) or self.paper is not None

    def __str__(self) -> str:
        """``61.2 ± 0.8 / 84.4``."""
        return f"{self._mean()} / {_NO_FIGURE if self.paper is None else _format_figure(self.paper)}"

    def _mean(self) -> str:
        found = self.summary
        if found is None:
            return self.why or _NO_FIGURE
        return f"{found.mean:.1f}" if found.sd is None else f"{found.mean:.1f} ± {found.sd:.1f}"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Parameters of the pre-trained network, floating-point operations and seconds of its training.

    ``paper_flop`` are the operations with which the paper trained the same network. ``pretraining_joules`` are known
    where the system tells them.
    """

    parameters: int | None = None
    pretraining_flop: float | None = None
    paper_flop: float | None = None
    pretraining_seconds: float = 0.0
    finetuning_seconds: float = 0.0
    pretraining_joules: float | None = None

    def cells(self) -> list[str]:
        """The cells of a row, in the order of ``_COST_COLUMNS``."""
        return [
            _NO_FIGURE if self.parameters is None else f"{self.parameters / 1e6:.2f} M",
            f"{_format_flop(self.pretraining_flop)} / {_format_flop(self.paper_flop)}",
            _duration(self.pretraining_seconds),
            _duration(self.finetuning_seconds),
            _NO_FIGURE if self.pretraining_joules is None else f"{self.pretraining_joules / 3600:,.1f} Wh",
        ]


_ENERGY = "pre-training energy"
_COST_COLUMNS = (
    "pre-trained parameters",
    "pre-training FLOP, ours / paper",
    "pre-training time",
    "fine-tuning time",
    _ENERGY,
)


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """A system with its cells in the order of the columns.

    ``step`` is the position of a point on a curve. ``system`` names the same system in every table, also after fewer
    steps.
    """

    name: str
    cells: list[Cell]
    cost: Cost | None = None
    step: int | None = None
    system: str = ""

    @property
    def is_baseline(self) -> bool:
        """Whether the row has a baseline, which has no cost, and which the paper does not have."""
        return self.cost is None and all(cell.paper is None for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A table with our figures. ``notes`` are sentences that explain it, ``answers`` say what follows from it."""

    name: str
    title: str
    columns: list[str]
    rows: list[ResultRow]
    notes: list[str]
    command: str
    curves: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    @property
    def heading(self) -> str:
        """``Table 5. Effect of the pre-training tasks``."""
        kind, number = self.name[:-1], self.name[-1]
        return f"{kind.capitalize()} {number}. {self.title}" if number.isdecimal() else self.title

    def text_rows(self) -> list[list[str]]:
        """The rows for a terminal, without their costs."""
        return [[row.name, *map(str, row.cells)] for row in self.rows]

    def markdown(self) -> str:
        """The table with its heading, its notes and its command. A cell shows our figure / the paper's."""
        has_energy = any(row.cost and row.cost.pretraining_joules is not None for row in self.rows)
        shown = len(_COST_COLUMNS) if has_energy else len(_COST_COLUMNS) - 1
        header = ["", *(f"{column}, ours / paper" for column in self.columns), *_COST_COLUMNS[:shown]]
        rows = [
            [row.name, *map(str, row.cells), *(row.cost.cells()[:shown] if row.cost else [_NO_FIGURE] * shown)]
            for row in self.rows
        ]
        notes = "".join(f"- {each}\n" for each in self.notes)
        return f"## {self.heading}\n\n{markdown_table(header, rows)}\n{notes}\n```console\n$ {self.command}\n```\n"


def _format_figure(figure: float) -> str:
    """With one decimal, or two if it has them: the paper's perplexities."""
    return f"{figure:.1f}" if round(figure, 1) == figure else f"{figure:.2f}"


def _format_flop(flop: float | None) -> str:
    return _NO_FIGURE if flop is None else f"{flop:.1e}"


def _duration(seconds: float) -> str:
    return describe_duration(seconds) if seconds else _NO_FIGURE
