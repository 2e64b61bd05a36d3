"""The claims of the paper name rows and columns that exist."""

from __future__ import annotations

import pytest

from bertkit.reproduction.claims import CLAIMS, find_claims
from bertkit.reproduction.paper import find_tables, make_figure_5


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_about_systems_and_their_scores(name: str) -> None:
    (table,) = find_tables(name, 5)
    systems = {row.name for row in table.rows if row.system is not None}
    assert find_claims(table) == CLAIMS[name]
    assert all({claim.better, claim.worse} <= systems for claim in CLAIMS[name])
    columns = {column.name for column in table.columns if column.kind == "dev"}
    assert all(set(claim.columns) <= columns for claim in CLAIMS[name])


def test_claims_of_figure_5_are_about_its_ends() -> None:
    steps, start = find_claims(make_figure_5(5))
    assert (steps.better, steps.worse) == ("BERT-Base (masked LM), 5/5", "BERT-Base (masked LM), 1/5")
    assert (start.better, start.worse) == ("BERT-Base (masked LM), 1/5", "Left to right, 1/5")
    assert find_claims(make_figure_5(1)) == ()
