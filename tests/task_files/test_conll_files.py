"""Columns of words and tags."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.task_types.small_sentences import task as task

from bertkit.errors import BertkitError
from bertkit.task_files.conll_files import has_tag_columns, read_columns
from bertkit.task_types import TaggingTask
from bertkit.user_tables.guess import guess


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a O\nb x O\n", "line 2: 3 columns, and 2"),
        ("a O\nb\n", "line 2: 1 column, and 2 in the lines before. Fix the line"),
        ("a,O\nb,O\n", 'line 1: "a,O" is one column. Write a tab or a space between a word and its tag'),
        ("a O\nb PER\n", 'line 2: "PER" is not a tag'),
        ("a O\nb I-PRE\n", 'line 2: unknown tag "B-PRE"'),
    ],
)
def test_a_faulty_line_is_an_error_with_its_number(task: TaggingTask, tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "eng.train").write_text(rows, encoding="utf-8")
    with pytest.raises(BertkitError, match=message):
        task.examples("train")


def test_comments_before_a_sentence_and_a_space_as_a_word(tmp_path: Path) -> None:
    """As in CoNLL-U and in KLUE, which tags every character; a # with a tag is a word, as is one after the first."""
    file = tmp_path / "t.tsv"
    file.write_text(
        "## CHAR\tNE_TAG\n## s1\t<A B:PS> is.\nA\tB-PS\n \tI-PS\nB\tI-PS\n\n# text = # 1\n# \tO\n1\tO\n",
        encoding="utf-8",
    )
    assert has_tag_columns(file)
    found = [(sentence.words, sentence.tags) for sentence in read_columns(file)]
    assert found == [(("A", "", "B"), ("B-PS", "I-PS", "I-PS")), (("#", "1"), ("O", "O"))]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json"])
def test_a_table_is_not_taken_for_words(task: TaggingTask, tmp_path: Path, name: str) -> None:
    """A line without a space would be one word: ``{"river":"wide"}``."""
    (tmp_path / name).write_text('{"river":"wide"}\n', encoding="utf-8")
    with pytest.raises(BertkitError, match=r"is a table\. Words are read from columns without a header"):
        list(task.reader.read(tmp_path / name))


def test_a_file_named_conll_is_read_as_tags_whatever_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("a B-\nb O\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r't\.conll, line 1: "B-" is not a tag'):
        guess(tmp_path / "t.conll")
