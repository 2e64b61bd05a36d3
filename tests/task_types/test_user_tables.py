"""The user's own table: what is guessed, what is said about it, what is refused."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bertkit.errors import BAD_DATA, WRONG_USAGE, BertkitError
from bertkit.task_types import RegressionTask, TextClassificationTask, TextExample, from_record
from bertkit.task_types.user_tables import guess

WORDS = ["the", "film", "was", "long", "and", "loud", "but", "every", "scene", "had", "something", "bright", "in", "it"]


def sentence(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=9)) + f" {seed}"


def reviews(rows: int = 40, **odd_labels: str) -> list[tuple[str, str, str]]:
    """(id, review, label); ``row_7="postive"`` changes one label."""
    table = [(str(row), sentence(row), ("negative", "positive")[row % 3 > 0]) for row in range(rows)]
    for row, label in odd_labels.items():
        place = int(row.removeprefix("row_"))
        table[place] = (*table[place][:2], label)
    return table


def write_csv(path: Path, rows: list[tuple[str, str, str]], header: str = "id,review,label") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def fails(message: str, exit_code: int, path: Path, **options: object) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        guess(path, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == exit_code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path()


def test_the_guess_is_said_in_a_sentence(here: Path) -> None:
    found = guess(write_csv(here / "reviews.csv", reviews(40)))
    assert found.sentence == "text = review, label = label (2 classes: negative 14, positive 26), id = id"
    assert isinstance(found.task, TextClassificationTask)
    assert found.task.labels == ("negative", "positive")
    assert not found.task.pair
    assert (found.task.metric, found.task.also) == ("accuracy", ("macro_f1", "matthews"))


def test_columns_may_be_given(here: Path) -> None:
    path = write_csv(here / "t.csv", reviews(), header="title,body,label")
    found = guess(path, text="body", label="label")
    assert found.sentence.startswith("text = body, label = label")
    assert isinstance(found.task, TextClassificationTask)
    assert not found.task.pair


@pytest.mark.parametrize(
    ("header", "pair"),
    [
        ("sentence1,sentence2,label", ("sentence1", "sentence2")),
        ("text_b,text_a,label", ("text_a", "text_b")),
        ("premise,hypothesis,gold_label", ("premise", "hypothesis")),
        ("question,sentence,target", ("question", "sentence")),
        ("first_line,second_line,class", ("first_line", "second_line")),
    ],
)
def test_a_pair_is_known_by_its_names(header: str, pair: tuple[str, str], here: Path) -> None:
    rows = [(sentence(row), sentence(row + 500), label) for row, (_, _, label) in enumerate(reviews())]
    task = guess(write_csv(here / "pairs.csv", rows, header)).task
    columns = task.files.splits["train"].columns
    assert (columns.first, columns.second) == pair
    assert isinstance(task, TextClassificationTask)
    assert task.pair


def test_a_pair_may_be_given(here: Path) -> None:
    rows = [(sentence(row), sentence(row + 500), label) for row, (_, _, label) in enumerate(reviews())]
    task = guess(write_csv(here / "pairs.csv", rows, "title,body,label"), text="title", pair="body").task
    assert isinstance(task, TextClassificationTask)
    assert task.pair
    assert task.examples("train")[0].second is not None


def test_numbers_are_learnt_on_a_scale_of_their_own(here: Path) -> None:
    rows = [(str(row), sentence(row), f"{1000 + 2.5 * row}") for row in range(40)]
    found = guess(write_csv(here / "prices.csv", rows, header="id,offer,score"))
    assert "label = score (a number from 1000 to 1097.5, 1.05e+03 on average)" in found.sentence
    assert found.task.labels == ()
    assert isinstance(found.task, RegressionTask)
    assert found.task.metric == "pearson"
    assert found.task.numbers.origin == pytest.approx(1048.75)
    output = {"value": np.array(48.75 / found.task.numbers.unit)}
    assert found.task.decode(TextExample("1", "a"), [], [output]).label == pytest.approx(1097.5)


def test_few_whole_numbers_are_classes_unless_told_otherwise(here: Path) -> None:
    rows = [(str(row), sentence(row), str(1 + row % 5)) for row in range(40)]
    path = write_csv(here / "stars.csv", rows, header="id,review,stars")
    assert guess(path).task.labels == ("1", "2", "3", "4", "5")
    assert guess(path, kind="number").task.labels == ()


def test_numbers_as_classes_are_in_the_order_of_their_size(here: Path) -> None:
    rows = [(str(row), sentence(row), str(8 + row % 5)) for row in range(40)]
    assert guess(write_csv(here / "n.csv", rows)).task.labels == ("8", "9", "10", "11", "12")


def test_a_label_column_without_a_telling_name_is_found_by_its_values(here: Path) -> None:
    path = write_csv(here / "t.csv", reviews(), header="id,review,verdict")
    assert guess(path).task.files.splits["train"].columns.label == "verdict"


def test_two_columns_that_could_be_the_label_are_a_question(here: Path) -> None:
    rows = [f"{sentence(row)},{label},{'en' if row % 2 else 'fr'}" for row, (_, _, label) in enumerate(reviews())]
    (here / "t.csv").write_text("\n".join(["review,verdict,language", *rows]), encoding="utf-8")
    fails("the label may be verdict or language. Say which one is: --label COLUMN", WRONG_USAGE, here / "t.csv")


def test_a_wrong_column_name_is_answered_with_the_right_ones(here: Path) -> None:
    path = write_csv(here / "reviews.csv", reviews())
    message = r'^reviews.csv has no column "lable". Its columns: id, review, label. Did you mean "label"\?$'
    fails(message, WRONG_USAGE, path, label="lable")


def test_a_slip_in_a_label_is_refused_with_its_line(here: Path) -> None:
    path = write_csv(here / "reviews.csv", reviews(40, row_7="postive"))
    message = (
        r'^reviews.csv, line 9: label "postive" occurs once; "positive" occurs 25 times. '
        r"Fix the row, or keep it as a class of its own with --allow-rare-labels.$"
    )
    fails(message, BAD_DATA, path)
    assert guess(path, allow_rare_labels=True).task.labels == ("negative", "positive", "postive")


@pytest.mark.parametrize("odd", ["Positive", "POSITIVE", "positve", "poistive", "positivee", "pasitive"])
def test_near_spellings_are_slips(odd: str, here: Path) -> None:
    fails(f'line 9: label "{odd}"', BAD_DATA, write_csv(here / "r.csv", reviews(40, row_7=odd)))


@pytest.mark.parametrize("other", ["neutral", "unsure", "mixed"])
def test_other_words_are_classes_even_if_rare(other: str, here: Path) -> None:
    assert other in guess(write_csv(here / "r.csv", reviews(40, row_7=other))).task.labels


def test_short_codes_and_numbered_names_are_no_slips(here: Path) -> None:
    rows = [(str(row), sentence(row), "en" if row else "es") for row in range(30)]
    assert guess(write_csv(here / "codes.csv", rows)).task.labels == ("en", "es")
    rows = [(str(row), sentence(row), "topic_12" if row else "topic_13") for row in range(30)]
    assert guess(write_csv(here / "topics.csv", rows)).task.labels == ("topic_12", "topic_13")


def test_the_same_number_written_in_two_ways_is_a_slip(here: Path) -> None:
    rows = [(str(row), sentence(row), "0" if row % 2 else "1.0" if row == 6 else "1") for row in range(30)]
    fails('line 8: label "1.0" occurs once; "1" occurs 14 times', BAD_DATA, write_csv(here / "n.csv", rows))


def test_spaces_around_a_label_do_not_make_a_class(here: Path) -> None:
    assert guess(write_csv(here / "r.csv", reviews(40, row_7=" positive "))).task.labels == ("negative", "positive")


def test_one_class_is_refused(here: Path) -> None:
    rows = [(str(row), sentence(row), "good") for row in range(9)]
    fails('every row has the label "good". There must be at least two', BAD_DATA, write_csv(here / "r.csv", rows))


def test_no_label_at_all_is_refused(here: Path) -> None:
    rows = [(str(row), sentence(row), "") for row in range(9)]
    fails('no row has a label in column "label"', BAD_DATA, write_csv(here / "r.csv", rows))


def test_a_label_column_full_of_different_values_is_questioned(here: Path) -> None:
    rows = [
        (str(row), sentence(row), f"word{'abcdefghijklmnopqrstuvwxyz'[row % 26] * (1 + row // 26)}")
        for row in range(60)
    ]
    path = write_csv(here / "r.csv", rows)
    fails('column "label" has 60 different values in 60 rows', BAD_DATA, path)
    assert len(guess(path, kind="classes", allow_rare_labels=True).task.labels) == 60


def test_a_word_among_numbers_is_named(here: Path) -> None:
    rows = [(str(row), sentence(row), "many" if row == 4 else str(row / 2)) for row in range(60)]
    path = write_csv(here / "r.csv", rows, header="id,review,score")
    fails('r.csv, line 6: "many" is not a number', BAD_DATA, path, kind="number")


def test_rows_without_a_label_are_left_out_and_said(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews(40, row_3="", row_8=" "))).task
    assert len(task.examples("train")) + len(task.examples("dev")) == 38
    assert "2 rows of train have no label and are left out" in task.reader.notes()


def test_a_tenth_of_every_class_is_held_out_and_said(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews(400))).task
    train, dev = task.examples("train"), task.examples("dev")
    assert len(train) + len(dev) == 400
    assert Counter(example.label for example in dev) == {"negative": 13, "positive": 27}
    assert any(note.startswith("no dev file: 40 of 400 examples are held out as dev") for note in task.reader.notes())


def test_what_is_held_out_does_not_hang_on_the_order_of_the_rows(here: Path) -> None:
    rows = reviews(99)
    dev = guess(write_csv(here / "a.csv", rows)).task.examples("dev")
    turned = guess(write_csv(here / "b.csv", rows[::-1])).task.examples("dev")
    assert {example.first for example in dev} == {example.first for example in turned}


def test_equal_texts_are_never_on_both_sides(here: Path) -> None:
    rows = [(row, sentence(int(row) % 37), label) for row, _, label in reviews(222)]
    rows = [(row, text.upper() if int(row) % 2 else text, label) for row, text, label in rows]
    task = guess(write_csv(here / "r.csv", rows)).task
    train, dev = ({example.first.lower() for example in task.examples(split)} for split in ("train", "dev"))
    assert dev
    assert not train & dev


def test_a_text_that_fills_the_file_does_not_become_all_of_dev(here: Path) -> None:
    rows = [(str(row), "the same words" if row < 80 else sentence(row), "ab"[row % 2]) for row in range(100)]
    task = guess(write_csv(here / "r.csv", rows), text="review").task
    assert 1 <= len(task.examples("dev")) <= 12


def test_a_dev_file_is_used_and_its_overlap_counted(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    dev = write_csv(here / "dev.csv", [*reviews(3), ("77", sentence(77), "positive")])
    task = guess(train, dev=dev).task
    assert (len(task.examples("train")), len(task.examples("dev"))) == (40, 4)
    assert "3 of 4 dev examples have a text that is in train too: scores are too good" in task.reader.notes()


def test_a_label_that_only_dev_has_is_refused(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    dev = write_csv(here / "dev.csv", reviews(9, row_4="postive"))
    message = r'^dev.csv, line 6: unknown label "postive". .* knows: negative, positive. Did you mean "positive"\?$'
    with pytest.raises(BertkitError, match=message):
        guess(train, dev=dev)


def test_a_test_file_needs_no_labels(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    (here / "test.csv").write_text(f"review\n{sentence(3)}\n", encoding="utf-8")
    (example,) = guess(train, test=here / "test.csv").task.examples("test")
    assert example == TextExample("2", sentence(3))


def test_contradictions_are_counted(here: Path) -> None:
    rows = [*reviews(40), ("41", sentence(4), "negative"), ("42", sentence(4), "positive")]
    task = guess(write_csv(here / "r.csv", rows), dev=write_csv(here / "d.csv", reviews(3))).task
    assert "1 texts of train occur with different labels" in task.reader.notes()


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


def test_a_file_without_column_names_is_read_from_its_first_line(here: Path) -> None:
    rows = [f'{1 + row % 2},"{sentence(row)}"' for row in range(20)]
    (here / "nameless.csv").write_text("\n".join(rows), encoding="utf-8")
    found = guess(here / "nameless.csv")
    assert found.sentence == (
        "text = 2, label = 1 (2 classes: 1 10, 2 10); there is no line of column names, so the columns are numbered"
    )
    assert len(found.task.examples("train")) + len(found.task.examples("dev")) == 20


def test_unusual_delimiters_are_mentioned(here: Path) -> None:
    assert guess(write_as(here / "semicolons.csv", reviews())).sentence.endswith("; cells are separated by semicolons")


@pytest.mark.parametrize(
    ("name", "text", "first", "second"),
    [
        ("in.csv", "review,id\nShort and sweet,5\n", "Short and sweet", None),
        ("in.txt", "Short and sweet\n\n", "Short and sweet", ""),
        ("in.jsonl", '{"review": "Short and sweet"}\n', "Short and sweet", None),
        ("in.csv", "review\nShort and sweet\n", "Short and sweet", None),
    ],
)
def test_new_input_is_read_by_the_task(name: str, text: str, first: str, second: str | None, here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / name).write_text(text, encoding="utf-8")
    examples = list(task.reader.read(here / name))
    assert [example.first for example in examples] == [first] if second is None else [first, second]
    assert all(example.label is None for example in examples)


def test_new_input_without_the_column_is_refused(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / "in.csv").write_text("reviews,when\nGood,today\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r'in.csv has no column "review". .*Did you mean "reviews"\?'):
        list(task.reader.read(here / "in.csv"))


def test_a_first_line_is_never_taken_for_a_name_that_the_task_does_not_know(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / "in.csv").write_text("A fine film\nA poor film\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r'in.csv has no column "review". Its columns: A fine film'):
        list(task.reader.read(here / "in.csv"))


def test_a_task_without_files_reads_text_and_pair(here: Path) -> None:
    (here / "in.csv").write_text("id,pair,text\n1,b,a\n", encoding="utf-8")
    task = TextClassificationTask(name="theirs", metric="accuracy", labels=("x", "y"), pair=True)
    assert list(task.reader.read(here / "in.csv")) == [TextExample("2", "a", "b")]


def test_pairs_of_new_input_are_tab_separated_lines(here: Path) -> None:
    rows = [(sentence(row), sentence(row + 500), label) for row, (_, _, label) in enumerate(reviews())]
    task = guess(write_csv(here / "p.csv", rows, "premise,hypothesis,label")).task
    (here / "in.txt").write_text('One "thing\tand another\n', encoding="utf-8")
    assert list(task.reader.read(here / "in.txt")) == [TextExample("1", 'One "thing', "and another")]
