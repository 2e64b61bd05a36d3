from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.inference.text_column import open_text_column


def test_the_column_is_the_one_that_looks_like_text_or_the_named_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,title,body,stars\n7,a mill,the river ran past,3\n8,a stone,the old miller counted,4\n")
    guessed = open_text_column(path)
    assert list(guessed.texts()) == ["the river ran past", "the old miller counted"]
    assert guessed.sentence == "a.csv: text = body"
    assert list(open_text_column(path, "title").texts()) == ["a mill", "a stone"]
    with pytest.raises(BertkitError, match=r'has no column "titel".*Did you mean "title"'):
        open_text_column(path, "titel")


def test_the_only_column_is_the_text_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zzz\nthe river ran\nthe mill\n")
    assert list(open_text_column(path).texts()) == ["the river ran", "the mill"]


@pytest.mark.parametrize("value", ['["a", "b"]', '{"a": 1}', "[]"])
def test_a_list_or_an_object_is_no_text(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "[1] a river"}}\n{{"text": {value}}}\n')
    texts = open_text_column(tmp_path / "a.jsonl", "text").texts()
    assert next(texts) == "[1] a river"
    with pytest.raises(BertkitError, match=r'a\.jsonl, line 2: "text" is .*, not a text\.$'):
        next(texts)


def test_lines_are_texts_and_have_no_column(tmp_path: Path) -> None:
    path = tmp_path / "a.TXT"
    path.write_text("one\ttwo\nthree\n")
    lines = open_text_column(path)
    assert list(lines.texts()) == ["one\ttwo", "three"]
    assert lines.sentence == ""
    with pytest.raises(BertkitError, match="has lines and no columns: leave out --text"):
        open_text_column(path, "text")


def test_an_empty_text_is_one_and_a_missing_file_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n{"text": " "}\n')
    assert list(open_text_column(path).texts()) == ["one", " "]
    with pytest.raises(BertkitError, match="does not exist"):
        open_text_column(tmp_path / "b.csv")


def test_a_table_may_have_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\n1,ein müder Müller\n2,zwei\n".encode("cp1252"))
    assert list(open_text_column(path, encoding="cp1252").texts()) == ["ein müder Müller", "zwei"]


def test_a_first_line_that_may_be_a_text_is_not_taken_for_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a fine film to see\nbad one\nthe old mill\n")
    with pytest.raises(BertkitError, match='line 1: "a fine film to see" may be the name of the column or a text'):
        open_text_column(path)
    assert list(open_text_column(path, "a fine film to see").texts()) == ["bad one", "the old mill"]
