"""The labels of a column: likely typos, separators and spellings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.task_types.small_tables import fails, reviews, sentence, write, write_csv
from tests.task_types.small_tables import here as here
from tests.task_types.small_tables import task as task

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.task_files.labels import Labels, merge_spellings, read_labels, write_labels
from bertkit.task_types import FileTask, MultiLabelTask, TaggingTask, TextClassificationTask, from_record
from bertkit.user_tables.guess import guess


def test_a_typo_in_a_label_is_an_error_with_its_line(here: Path) -> None:
    path = write_csv(here / "reviews.csv", reviews(40, row_7="postive"))
    message = (
        r'^reviews.csv, line 9: label "postive" occurs once; "positive" occurs 25 times. '
        r"Fix the row, or keep it as a class of its own with --allow-rare-labels.$"
    )
    fails(message, BAD_DATA, path)
    assert guess(path, allow_rare_labels=True).task.labels == ("negative", "positive", "postive")


@pytest.mark.parametrize("odd", ["Positive", "POSITIVE"])
def test_spellings_of_one_label_are_counted(odd: str, here: Path) -> None:
    message = (
        rf'line 9: 2 spellings of one label \("positive" 25 times, "{odd}" once\). --fold-labels treats them as one'
    )
    fails(message, BAD_DATA, write_csv(here / "r.csv", reviews(40, row_7=odd)))


def test_spellings_of_one_label_are_one_class_on_request(here: Path) -> None:
    path = write_csv(here / "r.csv", reviews(40, row_7="Positive", row_8=" POSITIVE", row_9="Negative"))
    found = guess(path, fold_labels=True)
    assert found.task.labels == ("negative", "positive")
    assert "positive 26" in found.sentence
    assert {example.label for example in found.task.examples("train")} == {"negative", "positive"}
    assert from_record(found.task.record()).labels == ("negative", "positive")
    kept = guess(path, allow_rare_labels=True)
    assert kept.task.labels == ("Negative", "POSITIVE", "Positive", "negative", "positive")


def test_a_typo_is_an_error_even_if_spellings_are_one(here: Path) -> None:
    path = write_csv(here / "r.csv", reviews(40, row_7="Positive", row_10="postive"))
    fails('label "postive" occurs once; "positive" occurs', BAD_DATA, path, fold_labels=True)


def test_spellings_in_cells_with_several_labels_are_one_label_on_request(here: Path) -> None:
    path = write(here / "films.jsonl", ["dull;long", "Long", "DULL", "long"])
    found = guess(path, label="tags", kind="labels", fold_labels=True).task
    assert isinstance(found, MultiLabelTask)
    assert found.labels == ("dull", "long")
    assert found.read_label("LONG;Dull", "here") == ("dull", "long")


@pytest.mark.parametrize("odd", ["positve", "poistive", "positivee", "pasitive"])
def test_similar_rare_labels_are_typos(odd: str, here: Path) -> None:
    fails(f'line 9: label "{odd}"', BAD_DATA, write_csv(here / "r.csv", reviews(40, row_7=odd)))


@pytest.mark.parametrize("other", ["neutral", "unsure", "mixed"])
def test_other_words_are_classes_even_if_rare(other: str, here: Path) -> None:
    assert other in guess(write_csv(here / "r.csv", reviews(40, row_7=other))).task.labels


def test_short_codes_and_numbered_names_are_not_typos(here: Path) -> None:
    rows = [(str(row), sentence(row), "en" if row else "es") for row in range(30)]
    assert guess(write_csv(here / "codes.csv", rows)).task.labels == ("en", "es")
    rows = [(str(row), sentence(row), "topic_12" if row else "topic_13") for row in range(30)]
    assert guess(write_csv(here / "topics.csv", rows)).task.labels == ("topic_12", "topic_13")


def test_the_same_number_written_in_two_ways_is_an_error(here: Path) -> None:
    rows = [(str(row), sentence(row), "0" if row % 2 else "1.0" if row == 6 else "1") for row in range(30)]
    fails(r'line 8: 2 spellings of one label \("1" 14 times, "1.0" once\)', BAD_DATA, write_csv(here / "n.csv", rows))


def test_names_with_an_underscore_between_digits_are_classes(here: Path) -> None:
    rows = [(str(row), sentence(row), f"{row % 5}_{row // 5 % 5}") for row in range(100)]
    task = guess(write_csv(here / "n.csv", rows)).task
    assert isinstance(task, TextClassificationTask)
    assert len(task.labels) == 25


def test_spaces_around_a_label_do_not_make_a_class(here: Path) -> None:
    assert guess(write_csv(here / "r.csv", reviews(40, row_7=" positive "))).task.labels == ("negative", "positive")


@pytest.mark.parametrize(
    ("cells", "separator"),
    [(["a|b", "b", "a"], "|"), (["a, b", "b,c", "c", "a"], ","), (['["a"]', '["b", "a"]', "[]"], ";")],
)
def test_separators_are_found(cells: list[str], separator: str, tmp_path: Path) -> None:
    found = guess(write(tmp_path / "t.jsonl", cells), label="tags").task
    assert isinstance(found, MultiLabelTask)
    assert found.separator == separator


@pytest.mark.parametrize("cells", [["Arts; music", "Law"], ["one, two", "three, four"], ["yes", "no"]])
def test_names_with_a_mark_in_them_stay_one_class(cells: list[str], tmp_path: Path) -> None:
    task = guess(write(tmp_path / "t.jsonl", cells), label="tags").task
    assert not isinstance(task, MultiLabelTask)
    assert set(task.labels) == set(cells)


@pytest.mark.parametrize(
    ("cells", "doubtful"), [(["bad", "bad;dull", "fine", "fine;long"], True), (["Arts; music", "Law"], False)]
)
def test_classes_that_may_be_several_labels_are_mentioned(cells: list[str], doubtful: bool, tmp_path: Path) -> None:
    found = guess(write(tmp_path / "t.jsonl", cells), label="tags")
    assert not isinstance(found.task, MultiLabelTask)
    assert found.sentence.endswith("; if cells hold several: --kind labels)") == doubtful


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])).map(str.strip).filter(bool), unique=True))
def test_written_labels_are_read_back(names: list[str]) -> None:
    assert read_labels(write_labels(names, ";"), ";", "here") == names


def test_a_list_is_spelled_as_in_a_csv_and_an_empty_name_is_no_label() -> None:
    assert read_labels('["a", "", " ", true, 1, 1.5]', ";", "here") == ["a", "true", "1", "1.5"]
    assert read_labels('[""]', ";", "here") == []


def test_a_broken_list_is_an_error_with_its_line(tmp_path: Path) -> None:
    table = write(tmp_path / "t.jsonl", ['["a", "b"]', '["b"', '["a"]'])
    with pytest.raises(BertkitError, match=r't.jsonl, line 2: \["b" is not a list of labels'):
        guess(table, label="tags", kind="labels")


@pytest.mark.parametrize("cell", ["[" * 100_000, "[null]", '[["a"]]', '["a", {}]'])
def test_a_list_of_labels_has_labels(cell: str) -> None:
    with pytest.raises(BertkitError, match=r"^here: \[.{0,99} is not a list of labels") as caught:
        read_labels(cell, ";", "here")
    assert len(str(caught.value)) < 250


def test_classes_in_brackets_are_told_from_lists(tmp_path: Path) -> None:
    table = write(tmp_path / "t.jsonl", ["[spam]", "[ham]"] * 9)
    with pytest.raises(BertkitError, match=r"line 1: \[spam\] is not a list .* one class each are --kind classes\."):
        guess(table, label="tags")
    assert guess(table, label="tags", kind="classes").task.labels == ("[ham]", "[spam]")


@pytest.mark.parametrize("kind", [partial(TextClassificationTask, metric="accuracy"), MultiLabelTask, TaggingTask])
def test_two_labels_of_one_name_are_an_error(kind: Callable[..., FileTask]) -> None:
    with pytest.raises(BertkitError, match=r'^weather has two labels named "wet"\. Each needs its own name\.$'):
        kind(name="weather", labels=("wet", "dry", "wet"))


def test_every_label_has_a_spelling_or_none_has() -> None:
    with pytest.raises(BertkitError, match=r"weather has 2 labels and 1 spellings. Each label needs one"):
        TextClassificationTask(name="weather", metric="accuracy", labels=("wet", "dry"), spellings=("0",))


def test_long_ids_that_are_equal_as_floats_are_two_classes() -> None:
    one, other = str(10**18), str(10**18 + 1)
    assert merge_spellings(Labels(Counter([one, other]), {one: (Path("a"), 1), other: (Path("a"), 2)})).counts == {
        one: 1,
        other: 1,
    }


@pytest.mark.parametrize(
    ("labels", "cell", "expected"),
    [
        (("False", "True"), "true", "True"),
        (("false", "true"), "FALSE", "false"),
        (("0", "1"), "1.0", "1"),
        (("0.0", "1.0"), "0", "0.0"),
    ],
)
def test_truth_values_and_numbers_are_the_same_in_every_format(
    labels: tuple[str, ...], cell: str, expected: str
) -> None:
    """pandas writes True, and 1.0 in a column with an empty cell; Parquet gives true and 1, and Excel TRUE."""
    task = TextClassificationTask(name="t", metric="accuracy", labels=labels)
    assert task.read_label(cell, "here") == expected
    with pytest.raises(BertkitError, match="unknown label"):
        task.read_label("2", "here")


def test_a_label_in_another_case_hides_no_separator(here: Path) -> None:
    cells = ["good|dry", "good", "dry", "GOOD|DRY", *["good", "dry", "good|dry"] * 12]
    path = here / "bars.csv"
    path.write_text("text,labels\n" + "".join(f"{sentence(row)},{cell}\n" for row, cell in enumerate(cells)))
    found = guess(path, kind="labels", fold_labels=True).task
    assert isinstance(found, MultiLabelTask)
    assert (found.separator, found.labels) == ("|", ("dry", "good"))
