"""The figures of the tables are those of the paper; tables are found by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.reproduction import paper as tables
from bertkit.reproduction.paper import PaperTable, System, find_column, find_tables


@pytest.fixture(scope="module")
def paper(data_folder: Path) -> dict[str, Any]:
    """The figures of the paper, transcribed independently of this project."""
    path = data_folder.parent / "paper_tables.json"
    if not path.exists():
        pytest.skip("no paper_tables.json beside the data")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def figures_by_name(table: PaperTable) -> dict[str, tuple[float | None, ...]]:
    return {row.name.removeprefix("Features: "): row.paper for row in table.rows}


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (tables.TABLE_1, "table1_glue_test"),
        (tables.TABLE_2, "table2_squad_v1"),
        (tables.TABLE_3, "table3_squad_v2"),
        (tables.TABLE_4, "table4_swag"),
        (tables.TABLE_5, "table5_pretraining_tasks_dev"),
        (tables.TABLE_7, "table7_conll2003_ner"),
    ],
)
def test_rows_have_the_figures_of_the_paper(table: PaperTable, key: str, paper: dict[str, Any]) -> None:
    published = {name.removeprefix("Feature-based: "): tuple(each) for name, each in paper[key]["rows"].items()}
    assert [column.name for column in table.columns] == paper[key]["columns"]
    figures = figures_by_name(table)
    assert {name: row for name, row in figures.items() if name in published} == published
    for name in figures.keys() - published.keys():
        assert set(figures[name]) == {None}, name


def test_sizes_and_maskings_have_the_figures_of_the_paper(paper: dict[str, Any]) -> None:
    sizes = [
        (f"L={layers}, H={width}, A={heads}", *rest)
        for layers, width, heads, *rest in paper["table6_model_size_dev"]["rows"]
    ]
    assert [(row.name, *row.paper) for row in tables.TABLE_6.rows] == sizes
    masks = [(f"MASK {m}, SAME {s}, RND {r}", *rest) for m, s, r, *rest in paper["table8_masking_dev"]["rows"]]
    assert [(row.name, *row.paper) for row in tables.TABLE_8.rows] == masks


def test_tables_are_found_by_name_or_number() -> None:
    assert [table.name for table in find_tables("5", 2)] == ["table5"]
    assert len(find_tables("all", 2)) == 10
    (figure,) = find_tables("figure5", 3)
    assert [row.system.name for row in figure.rows if row.system] == [
        f"{name}@{place}" for name in ("bert-base", "ltr") for place in (1, 2, 3)
    ]
    with pytest.raises(BertkitError, match=r'no table named "tabel6"\. Did you mean "table6"'):
        find_tables("tabel6", 2)


def test_names_of_systems_differ_by_what_was_changed() -> None:
    changes: list[System] = [
        System("gpt"),
        System("gpt", match="flop"),
        System("gpt", cased=True),
        System("gpt", snapshot=2),
        System("gpt", lstm=True),
    ]
    assert [each.name for each in changes] == ["gpt", "gpt=flop", "gpt-cased", "gpt@2", "gpt+bilstm"]


def test_columns_are_found_by_their_names() -> None:
    found = find_column("table1", "MRPC"), find_column("table6", "MRPC"), find_column("figure5", "MNLI-m")
    assert [column and column.score for column in found] == ["f1", "accuracy", "accuracy"]
    assert find_column("table1", "SWAG") is None
    assert find_column("table9", "MRPC") is None
