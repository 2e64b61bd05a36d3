"""Folders that Hugging Face datasets saved."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.saved_datasets import CLASSES, TEXT, reviews, save
from tests.formats.saved_datasets import saved as saved

from bertkit.errors import BAD_DATA, WRONG_USAGE, BertkitError
from bertkit.formats.tables import Table
from bertkit.task_types import MultiLabelTask, TextExample
from bertkit.user_tables.guess import guess


def test_a_saved_dataset_is_read_with_the_names_of_its_classes(saved: Path) -> None:
    found = guess(saved)
    assert found.sentence == "text = text, label = label (3 classes: neg 13, odd 12, pos 12)"
    task = found.task
    assert task.name == "files:imdb"
    assert [len(task.examples(split)) for split in ("train", "dev", "test")] == [37, 13, 2]
    assert task.examples("train")[22] == TextExample("23", "film number 22", None, "pos")
    assert task.examples("dev")[0].label == "pos"
    assert [each.label for each in task.examples("test")] == [None, None]


def test_one_split_is_a_table(saved: Path) -> None:
    task = guess(saved / "train").task
    assert task.heldout
    assert len(task.examples("train")) + len(task.examples("dev")) == 37
    assert [each.first for each in task.reader.read(saved / "test")] == ["one", "two"]
    with pytest.raises(BertkitError, match=r"imdb holds several splits. Name one of them: train, validation, test"):
        list(task.reader.read(saved))


def test_without_a_state_all_its_arrow_files_are_read(saved: Path) -> None:
    (saved / "train" / "state.json").unlink()
    assert len(list(Table(saved / "train").rows("text"))) == 37


@pytest.mark.parametrize(
    "feature",
    [{"feature": CLASSES, "_type": "Sequence"}, {"feature": CLASSES, "_type": "List"}, [CLASSES]],
)
def test_lists_of_classes_are_several_labels(feature: Any, tmp_path: Path) -> None:
    columns: dict[str, Sequence[Any]] = {"text": [f"film {row}" for row in range(30)]}
    columns |= {"label": [[[0, 2], [1], []][row % 3] for row in range(30)]}
    task = guess(save(tmp_path / "d", columns, {"text": TEXT, "label": feature})).task
    assert isinstance(task, MultiLabelTask)
    assert [each.label for each in list(task.reader.rows("train"))[:3]] == [("neg", "odd"), ("pos",), ()]


def test_classes_without_names_are_numbers(tmp_path: Path) -> None:
    folder = save(tmp_path / "d", reviews(30), {"text": TEXT, "label": {"dtype": "int64", "_type": "Value"}})
    assert guess(folder).task.labels == ("0", "1", "2")


def spoil_number(folder: Path) -> None:
    (folder / "dataset_info.json").write_text(json.dumps({"features": {"label": {**CLASSES, "names": ["a", "b"]}}}))


def select_rows(folder: Path) -> None:
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "i.arrow"}]}))


def cut_in_half(folder: Path) -> None:
    file = sorted(folder.glob("*.arrow"))[0]
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def lead_outside(folder: Path) -> None:
    (folder / "state.json").write_text('{"_data_files": [{"filename": "../../secret.arrow"}]}')


def rewrite(name: str, content: object) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_number, r"dataset_info.json names 2 classes, and a row has number 2"),
        (select_rows, r"train is a selection of rows. Save it with dataset.flatten_indices"),
        (cut_in_half, r"data-00000-of-00002.arrow(, row \d+: cannot be read| is not a readable Arrow file)"),
        (lead_outside, r"train/secret.arrow does not exist"),
        (lambda folder: sorted(folder.glob("*.arrow"))[1].unlink(), r"data-00001-of-00002.arrow does not exist"),
        (lambda folder: sorted(folder.glob("*.arrow"))[0].write_bytes(b""), r"is not a readable Arrow file"),
        (lambda folder: sorted(folder.glob("*.arrow"))[0].write_bytes(b"x" * 99), r"is not a readable Arrow file"),
        (lambda folder: (folder / "state.json").write_text("{"), r"state.json is not readable JSON"),
        (
            lambda folder: (folder / "state.json").write_text("[" * 100_000),
            r"state.json is not readable JSON: its values are nested",
        ),
        (
            lambda folder: (folder / "dataset_info.json").write_text("[]"),
            r"dataset_info.json is not a JSON object",
        ),
        *(
            (rewrite("state.json", {"_data_files": each}), r"state.json does not list its files")
            for each in (7, "x", [7])
        ),
        *(
            (
                rewrite("dataset_info.json", {"features": {"label": {"_type": "ClassLabel", "names": each}}}),
                r"dataset_info.json has no list of names for the classes of a column",
            )
            for each in (7, "x")
        ),
    ],
)
def test_a_damaged_dataset_is_an_error(spoil: Any, message: str, saved: Path) -> None:
    spoil(saved / "train")
    with pytest.raises(BertkitError, match=message) as caught:
        guess(saved)
    assert caught.value.exit_code == BAD_DATA
    assert "\n" not in str(caught.value)


def test_offsets_of_texts_beyond_their_data_are_an_error(tmp_path: Path) -> None:
    """pyarrow reads them without a look at what they are: the process would end, or a text have other memory in it."""
    arrow = pytest.importorskip("pyarrow")
    offsets = arrow.py_buffer(np.array([0, 5, 2], dtype=np.int32))
    texts = arrow.Array.from_buffers(arrow.string(), 2, [None, offsets, arrow.py_buffer(b"some words")])
    folder = save(tmp_path / "d", {"text": texts}, {"text": TEXT})
    with pytest.raises(BertkitError, match=r"data-00000-of-00001\.arrow, row 1: cannot be read") as caught:
        list(Table(folder).rows("text"))
    assert caught.value.exit_code == BAD_DATA


@pytest.mark.parametrize(("number", "kind"), [(10**9, "date32"), (2**50, "timestamp[s]")])
def test_a_date_that_python_lacks_is_an_error(number: int, kind: str, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dates = arrow.array([number], arrow.type_for_alias(kind))
    parquet.write_table(arrow.table({"day": dates}), tmp_path / "t.parquet")
    with pytest.raises(BertkitError, match=r"t\.parquet, row 1: cannot be read \("):
        list(Table(tmp_path / "t.parquet").rows("day"))


def test_the_name_of_a_column_hides_no_bomb(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"review.text": ["x" * 20_000_000]}), path, compression="zstd")
    with pytest.raises(BertkitError, match="unpacks to more than"):
        list(Table(path).rows("review.text"))


@pytest.mark.parametrize("features", [7, "x", [[]], None])
def test_features_of_another_form_say_nothing_about_a_column(features: object, saved: Path) -> None:
    rewrite("dataset_info.json", {"features": features})(saved / "train")
    assert {cell for row in Table(saved / "train").rows("label") for cell in row.cells} == {"0", "1", "2"}


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    columns = [arrow.array(["a"]), arrow.array(["b"])]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["text", "text"]), tmp_path / "t.parquet")
    with pytest.raises(BertkitError, match=r't\.parquet has more than one column "text"\. Rename all but one\.$'):
        Table(tmp_path / "t.parquet")


def test_without_pyarrow_the_extra_is_named(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    with pytest.raises(BertkitError, match=r"arrow needs pyarrow: pip install 'bertkit\[parquet\]'") as caught:
        guess(saved)
    assert caught.value.exit_code == WRONG_USAGE


def test_parquet_files_of_hugging_face_have_the_names_of_their_classes(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    features = {
        "label": {"names": ["neg", "pos"], "_type": "ClassLabel"},
        "text": {"dtype": "string", "_type": "Value"},
    }
    table = arrow.table({"text": ["one", "two", "three"], "label": [1, 0, -1]})
    written = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(written, tmp_path / "t.parquet")
    assert [row.cells for row in Table(tmp_path / "t.parquet").rows("text", "label")] == [
        ["one", "pos"],
        ["two", "neg"],
        ["three", ""],
    ]


@pytest.mark.parametrize("as_lists", [True, False])
def test_records_inside_a_sequence_keep_their_fields(as_lists: bool, tmp_path: Path) -> None:
    """The answers of SQuAD: datasets before version 4 stores one record of lists, later ones a list of records."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    fields = {"text": TEXT, "place": {"dtype": "int64", "_type": "Value"}, "kind": CLASSES}
    features = {"answers": {"feature": fields, "_type": "Sequence"}}
    answers: list[dict[str, Any]] = [
        {"text": "mill", "place": 3, "kind": 1},
        {"text": "river", "place": 13, "kind": 0},
    ]
    stored = {name: [each[name] for each in answers] for name in fields} if as_lists else answers
    table = arrow.table({"answers": [stored]})
    written = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(written, tmp_path / "t.parquet")
    named = [{**each, "kind": CLASSES["names"][each["kind"]]} for each in answers]
    ((found,),) = Table(tmp_path / "t.parquet").all_values()
    assert found == ({name: [each[name] for each in named] for name in fields} if as_lists else named)


@pytest.mark.parametrize("metadata", ['{"info": 7}', "[]", '{"info": {"features": []}}'])
def test_other_descriptions_of_columns_are_no_names_of_classes(metadata: str, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"label": [1, -1]}).replace_schema_metadata({"huggingface": metadata})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert [row.cells for row in Table(tmp_path / "t.parquet").rows("label")] == [["1"], ["-1"]]


def test_a_damaged_description_of_columns_is_an_error(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": [1]}).replace_schema_metadata({"huggingface": "{"}), tmp_path / "t.parquet")
    with pytest.raises(BertkitError, match=r"t\.parquet describes its columns in a way that cannot be read"):
        list(Table(tmp_path / "t.parquet").rows("a"))


def test_texts_that_a_parquet_file_has_as_bytes_are_utf8(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": [b"caf\xc3\xa9", None, b"\xff"]}), tmp_path / "t.parquet")
    rows = Table(tmp_path / "t.parquet").rows("text")
    assert [next(rows).cells, next(rows).cells] == [["café"], [""]]
    with pytest.raises(BertkitError, match=r't\.parquet, row 3: "text" is bytes that are no UTF-8'):
        next(rows)


def test_a_parquet_file_that_is_compressed_as_a_whole_is_not_called_damaged(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": ["a"]}), tmp_path / "a.parquet")
    packed = tmp_path / "a.parquet.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    with pytest.raises(BertkitError, match="It is compressed as a whole: decompress it"):
        Table(packed)


def test_the_index_of_pandas_is_the_id_as_in_a_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"review": ["a mill", "a lake"] * 20, "label": ["x", "y"] * 20}).sample(frac=1)
    frame.to_parquet(tmp_path / "a.parquet")
    found = guess(tmp_path / "a.parquet")
    assert found.sentence == "text = review, label = label (2 classes: x 20, y 20), id = __index_level_0__"
    assert {example.id for split in ("train", "dev") for example in found.task.examples(split)} == set(
        map(str, range(40))
    )
