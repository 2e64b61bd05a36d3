"""Which columns of a table are the text, the pair and the label."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.task_types import TextClassificationTask
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


def test_a_label_column_without_a_known_name_is_found_by_its_values(here: Path) -> None:
    path = write_csv(here / "t.csv", reviews(), header="id,review,verdict")
    assert guess(path).task.files.splits["train"].columns.label == "verdict"


def test_two_possible_label_columns_are_an_error(here: Path) -> None:
    rows = [f"{sentence(row)},{label},{'en' if row % 2 else 'fr'}" for row, (_, _, label) in enumerate(reviews())]
    (here / "t.csv").write_text("\n".join(["review,verdict,language", *rows]), encoding="utf-8")
    fails("the label may be verdict or language. Name it: --label COLUMN", WRONG_USAGE, here / "t.csv")


def test_a_wrong_column_name_is_an_error_that_lists_the_columns(here: Path) -> None:
    path = write_csv(here / "reviews.csv", reviews())
    message = r'^reviews.csv has no column "lable". Its columns: id, review, label. Did you mean "label"\?$'
    fails(message, WRONG_USAGE, path, label="lable")
