"""Whether a conclusion of the paper holds for the systems that were trained here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertkit.report.tables import markdown_table
from bertkit.reproduction.claims import Claim

Verdict = Literal["holds here", "does not hold here", "holds for some tasks only", "undecided", "not measured"]

_HEADER = ("claim", "answer", "rows (first minus second)", "difference in points (95 % interval)")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The scores of two systems in a ``column``, in per cent, and the 95 % interval of ``better`` minus ``worse``.

    ``certain`` says whether they differ beyond an interval that is wide enough for all columns of the claim together.
    """

    column: str
    better: float
    worse: float
    low: float
    high: float
    certain: bool = False

    def __str__(self) -> str:
        """``QNLI +3.1 (+0.4 to +5.8)``."""
        return f"{self.column} {self.better - self.worse:+.1f} ({self.low:+.1f} to {self.high:+.1f})"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether a claim holds. There is no difference for a column whose scores are missing, or of one seed."""

    claim: Claim
    differences: list[Difference]
    verdict: Verdict


def judge(claim: Claim, differences: list[Difference]) -> Answer:
    """What the certain differences say. Without any true difference one claim in twenty has one by chance."""
    above = any(each.certain and each.better > each.worse for each in differences)
    below = any(each.certain and each.better < each.worse for each in differences)
    verdict: Verdict = "undecided" if differences else "not measured"
    if above and below:
        verdict = "holds for some tasks only"
    elif above or below:
        verdict = "holds here" if above else "does not hold here"
    return Answer(claim=claim, differences=differences, verdict=verdict)


def tabulate_answers(answers: Sequence[Answer]) -> str:
    """The answers as a table in Markdown."""
    rows = [
        (
            each.claim.text,
            each.verdict,
            f"{each.claim.better} against {each.claim.worse}",
            "; ".join(map(str, each.differences)) or "–",
        )
        for each in answers
    ]
    return markdown_table(_HEADER, rows)
