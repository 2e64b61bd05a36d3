"""A user's own files: every form of file, and what is said about all of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.task_types.small_tables import fails, reviews, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.evaluation.evaluate import read_split
from bertkit.task_types import TextClassificationTask, from_record
from bertkit.user_tables.guess import guess


def test_a_label_that_only_dev_has_is_refused(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    dev = write_csv(here / "dev.csv", reviews(9, row_4="postive"))
    message = r'^dev.csv, line 6: unknown label "postive". .* knows: negative, positive. Did you mean "positive"\?$'
    with pytest.raises(BertkitError, match=message):
        guess(train, dev=dev)


def test_the_task_outlives_the_folder_it_was_made_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = guess(write_csv(here / "r.csv", reviews(40))).task
    monkeypatch.chdir("/")
    again = from_record(json.loads(json.dumps(task.record())))
    assert again == task
    assert again.examples("train") == task.examples("train")


@pytest.mark.parametrize(
    "name", ["r.jsonl", "r.jsonl.gz", "r.tsv", "r.csv.gz", "r.parquet", "semicolons.csv", "bars.csv"]
)
def test_every_kind_of_file_gives_the_same_examples(name: str, here: Path) -> None:
    expected = guess(write_csv(here / "plain.csv", reviews(40))).task.examples("train")
    found = guess(write_as(here / name, reviews(40))).task.examples("train")
    assert [(each.first, each.label) for each in found] == [(each.first, each.label) for each in expected]


def write_as(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    names = ("id", "review", "label")
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)
        return path
    if "jsonl" in path.name:
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        mark = {"semicolons.csv": ";", "bars.csv": "|", "r.tsv": "\t"}.get(path.name, ",")
        text = "".join(mark.join(row) + "\n" for row in [names, *rows])
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_unusual_delimiters_are_mentioned(here: Path) -> None:
    assert guess(write_as(here / "semicolons.csv", reviews())).sentence.endswith("; cells are separated by semicolons")


def test_a_json_list_of_records_is_a_table_and_not_questions(here: Path) -> None:
    rows = [{"id": row, "review": sentence(row), "label": ("bad", "good")[row % 2]} for row in range(40)]
    path = here / "reviews.json"
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    task = guess(path).task
    assert isinstance(task, TextClassificationTask)
    assert len(task.examples("train")) == 36


def test_a_second_text_is_not_ignored_in_files_of_other_tasks(here: Path) -> None:
    path = here / "mc.csv"
    rows = [f"{sentence(row)},one {row},two {row},{row % 2}\n" for row in range(20)]
    path.write_text("question,choice0,choice1,label\n" + "".join(rows))
    fails('has no column "nonsense"', WRONG_USAGE, path, pair="nonsense")


def test_the_split_train_of_a_file_is_all_of_it(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews(40))).task
    assert len(read_split(task, None, "train").examples) < 40
    assert len(read_split(task, here / "r.csv", "train").examples) == 40


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("n.csv", "text,score\n" + "".join(f"word {row},{row}.5\n" for row in range(40)), "fold_labels"),
        ("t.conll", "a O\nb B-X\n\n" * 20, "allow_rare_labels"),
    ],
)
def test_options_about_classes_are_refused_where_there_are_none(
    tmp_path: Path, name: str, text: str, option: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BertkitError, match=f"no classes of texts.*leave out --{option.replace('_', '-')}"):
        guess(tmp_path / name, **{option: True})  # type: ignore[arg-type]
