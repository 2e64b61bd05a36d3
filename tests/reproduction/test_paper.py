"""The paper's figures in the tables are those of the paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.reproduction import paper as _paper
from bertkit.reproduction.paper import Table, find_tables


@pytest.fixture(scope="module")
def paper(data_folder: Path) -> dict[str, Any]:
    """Transcribed from the paper by somebody else."""
    path = data_folder.parent / "paper_tables.json"
    if not path.exists():
        pytest.skip("no paper_tables.json beside the data")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def rows(table: Table) -> dict[str, tuple[float | None, ...]]:
    return {row.name.removeprefix("Features: "): row.paper for row in table.rows}


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (_paper.TABLE_1, "table1_glue_test"),
        (_paper.TABLE_2, "table2_squad_v1"),
        (_paper.TABLE_3, "table3_squad_v2"),
        (_paper.TABLE_4, "table4_swag"),
        (_paper.TABLE_5, "table5_pretraining_tasks_dev"),
        (_paper.TABLE_7, "table7_conll2003_ner"),
    ],
)
def test_named_rows(table: Table, key: str, paper: dict[str, Any]) -> None:
    published = {name.removeprefix("Feature-based: "): tuple(each) for name, each in paper[key]["rows"].items()}
    assert [column.name for column in table.columns] == paper[key]["columns"]
    ours = rows(table)
    assert {name: figures for name, figures in ours.items() if name in published} == published
    for name in ours.keys() - published.keys():
        assert set(ours[name]) == {None}, name


def test_rows_of_sizes_and_maskings(paper: dict[str, Any]) -> None:
    sizes = [
        (f"L={layers}, H={width}, A={heads}", *rest)
        for layers, width, heads, *rest in paper["table6_model_size_dev"]["rows"]
    ]
    assert [(row.name, *row.paper) for row in _paper.TABLE_6.rows] == sizes
    masks = [(f"MASK {m}, SAME {s}, RND {r}", *rest) for m, s, r, *rest in paper["table8_masking_dev"]["rows"]]
    assert [(row.name, *row.paper) for row in _paper.TABLE_8.rows] == masks


def test_tables_are_found_by_name_and_number() -> None:
    assert [table.name for table in find_tables("5", 2)] == ["table5"]
    assert len(find_tables("all", 2)) == 10
    (figure,) = find_tables("figure5", 3)
    assert [row.contender for row in figure.rows] == [
        f"{name}@{place}" for name in ("bert-base", "ltr") for place in (1, 2, 3)
    ]
    with pytest.raises(BertkitError, match=r'no table named "tabel6"\. Did you mean "table6"'):
        find_tables("tabel6", 2)
