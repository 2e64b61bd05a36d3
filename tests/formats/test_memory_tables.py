"""Tables of pandas and of datasets become JSON Lines that are read as the same table in a file."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from tests.formats.memory_tables import TEXTS, dataset, dataset_dict, frame

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.formats.memory_tables import is_memory_table, write_memory_table
from bertkit.formats.tables import Table


def cells(path: Path) -> list[tuple[str, ...]]:
    table = Table(path)
    return [tuple(row.cells) for row in table.rows(*table.columns)]


def test_a_data_frame_has_the_cells_of_its_columns(tmp_path: Path) -> None:
    table = frame(text=TEXTS, label=["x", None, np.nan], n=[1, 2, 3], share=[1 / 3, 1e-12, np.nan])
    path = write_memory_table(table, tmp_path, "task")
    assert Table(path).columns == ("text", "label", "n", "share")
    assert [row[:3] for row in cells(path)] == [(TEXTS[0], "x", "1"), (TEXTS[1], "", "2"), (TEXTS[2], "", "3")]
    assert [float(row[3] or "nan") for row in cells(path)] == pytest.approx([1 / 3, 1e-12, np.nan], nan_ok=True)


def test_whole_numbers_are_whole_whether_some_are_missing_or_not(tmp_path: Path) -> None:
    table = frame(text=TEXTS, label=[1.0, np.nan, 0.0], score=[1.5, np.nan, 2.0], dose=[1.0, 2.0, 3.0])
    assert [row[1:] for row in cells(write_memory_table(table, tmp_path, "task"))] == [
        ("1", "1.5", "1"),
        ("", "", "2"),
        ("0", "2.0", "3"),
    ]


def test_a_long_data_frame_keeps_every_row_in_order(tmp_path: Path) -> None:
    path = write_memory_table(frame(text=[f"text {row}" for row in range(9001)]), tmp_path, "task")
    assert cells(path) == [(f"text {row}",) for row in range(9001)]


def test_a_dataset_has_the_names_of_its_classes(tmp_path: Path) -> None:
    table = dataset(TEXTS, [1, 0, -1])
    expected = [(TEXTS[0], "good"), (TEXTS[1], "bad"), (TEXTS[2], "")]
    assert cells(write_memory_table(table, tmp_path, "task")) == expected
    selected = table.select([2, 0]).with_format("numpy")
    assert cells(write_memory_table(selected, tmp_path, "task")) == [expected[2], expected[0]]


def test_a_dataset_dict_is_a_folder_of_its_splits(tmp_path: Path) -> None:
    splits = dataset_dict(train=dataset(TEXTS, [1, 0, 1]), validation=dataset(TEXTS[:1], [0]))
    folder = write_memory_table(splits, tmp_path, "task")
    assert sorted(path.name for path in folder.iterdir()) == ["train.jsonl", "validation.jsonl"]
    assert cells(folder / "validation.jsonl") == [(TEXTS[0], "bad")]


def test_the_same_table_has_the_same_path_and_another_one_does_not_replace_it(tmp_path: Path) -> None:
    first = write_memory_table(frame(text=TEXTS), tmp_path, "task")
    assert write_memory_table(frame(text=TEXTS), tmp_path, "task") == first
    assert write_memory_table(frame(text=TEXTS[:2]), tmp_path, "task") != first
    assert len(cells(first)) == len(TEXTS)


def test_other_splits_of_the_same_rows_are_another_table(tmp_path: Path) -> None:
    """A split that is written again after its rows were divided in another way must not be the earlier one."""
    rows = dataset(TEXTS, [1, 0, 1])
    divided = [(2, "test"), (1, "test"), (2, "validation")]
    folders = [
        write_memory_table(
            dataset_dict(**{"train": rows.select(range(size)), name: rows.select(range(size, 3))}), tmp_path, "task"
        )
        for size, name in divided
    ]
    for folder, (size, name) in zip(folders, divided, strict=True):
        assert sorted(path.stem for path in folder.iterdir()) == sorted(["train", name])
        assert len(cells(folder / "train.jsonl")) == size


def test_infinity_is_no_missing_number(tmp_path: Path) -> None:
    table = frame(text=["a", "b", "c"], score=[1.5, -np.inf, None])
    assert [each[1] for each in cells(write_memory_table(table, tmp_path, "train"))] == ["1.5", "-inf", ""]


def test_the_missing_value_of_pandas_is_missing_beside_infinity_and_in_lists(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    score = pandas.array([1.5, np.inf, pandas.NA], dtype="Float64")
    table = frame(score=score, scores=[[pandas.NA, 2], {"a": pandas.NA}, pandas.NA])
    expected = [("1.5", "[null, 2]"), ("inf", '{"a": null}'), ("", "")]
    assert cells(write_memory_table(table, tmp_path, "train")) == expected


def test_periods_and_intervals_are_texts(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    when = pandas.period_range("2026-01", periods=2, freq="M")
    ages = pandas.cut([3, 30], [0, 18, 99])
    assert cells(write_memory_table(frame(when=when, ages=ages), tmp_path, "train")) == [
        ("2026-01", "(0, 18]"),
        ("2026-02", "(18, 99]"),
    ]


def test_cells_that_json_lacks_are_texts_or_missing(tmp_path: Path) -> None:
    odd = [[1.0, np.nan], {"a": np.inf}, UUID(int=7), np.int64(3), None]
    table = frame(text=list("abcde"), odd=odd)
    expected = ["[1.0, null]", '{"a": "Infinity"}', str(UUID(int=7)), "3", ""]
    assert [each[1] for each in cells(write_memory_table(table, tmp_path, "train"))] == expected


def test_a_table_without_rows_is_named(tmp_path: Path) -> None:
    for table, name in ((frame(text=[]), "task"), (dataset_dict(train=dataset([], [])), "train of task")):
        with pytest.raises(BertkitError, match=f"^{name} is a table without rows") as raised:
            write_memory_table(table, tmp_path, "task")
        assert raised.value.exit_code == WRONG_USAGE
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    table = frame(a=["x"], b=["y"]).rename(columns={"b": "a"})
    with pytest.raises(BertkitError, match=r'the DataFrame has more than one column "a"') as raised:
        write_memory_table(table, tmp_path, "task")
    for names in ([0, 0], [1, "1"]):
        with pytest.raises(BertkitError, match=f'more than one column "{names[0]}"'):
            write_memory_table(frame(a=["x"], b=["y"]).set_axis(names, axis=1), tmp_path, "task")
    assert raised.value.exit_code == WRONG_USAGE


def test_columns_of_several_levels_are_an_error(tmp_path: Path) -> None:
    pandas, table = pytest.importorskip("pandas"), frame(a=["x"], b=["y"])
    table.columns = pandas.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    with pytest.raises(BertkitError, match=r"the DataFrame has columns of several levels"):
        write_memory_table(table, tmp_path, "task")


@pytest.mark.parametrize("value", ["a.csv", Path("a.csv"), ["a"], {"a": ["b"]}, {}, None, np.array(["a"])])
def test_anything_else_is_no_table(value: object) -> None:
    assert not is_memory_table(value)
    assert is_memory_table(frame(text=TEXTS))
    assert not is_memory_table(frame(text=TEXTS)["text"])
