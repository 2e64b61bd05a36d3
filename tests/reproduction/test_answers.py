"""Verdicts about claims."""

from __future__ import annotations

import pytest

from bertkit.reproduction.answers import Difference, judge, tabulate_answers
from bertkit.reproduction.claims import Claim

CLAIM = Claim(text="Masks are better", better="BERT", worse="LTR")
ABOVE = Difference(column="QNLI", better=58.2, worse=55.1, low=0.4, high=5.8, certain=True)
BELOW = Difference(column="SST-2", better=70.0, worse=75.0, low=-8.0, high=-2.0, certain=True)
UNCERTAIN = Difference(column="SQuAD", better=58.2, worse=55.1, low=0.4, high=5.8)
AROUND = Difference(column="MRPC", better=70.0, worse=69.0, low=-1.0, high=3.0)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([], "not measured"),
        ([AROUND], "undecided"),
        ([AROUND, UNCERTAIN], "undecided"),
        ([AROUND, ABOVE], "holds here"),
        ([BELOW, AROUND], "does not hold here"),
        ([BELOW, ABOVE], "holds for some tasks only"),
    ],
)
def test_verdicts_follow_from_the_intervals(differences: list[Difference], verdict: str) -> None:
    assert judge(CLAIM, differences).verdict == verdict


def test_answers_show_their_differences() -> None:
    table = tabulate_answers([judge(CLAIM, [ABOVE, BELOW]), judge(CLAIM, [])])
    assert "| BERT against LTR          | QNLI +3.1 (+0.4 to +5.8); SST-2 -5.0 (-8.0 to -2.0) |" in table
    assert "| Masks are better | not measured " in table
