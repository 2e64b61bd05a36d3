"""Tables with a word in each row."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.task_types.small_tables import fails
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.formats.tables import Table
from bertkit.task_files.tag_files import read_sentences
from bertkit.task_files.word_tables import find_word_columns
from bertkit.task_types import TaggingTask, TextClassificationTask
from bertkit.user_tables.guess import guess

_KAGGLE = """Sentence #,Word,POS,Tag
Sentence: 1,Ada,NNP,B-per
,came,VBD,O
,.,.,O
Sentence: 2,'s,POS,O
,Old,NNP,B-geo
,"York, NY",NNP,I-geo
"""


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_first_row_of_a_sentence_may_name_it(here: Path) -> None:
    found = guess(_write(here / "ner.csv", _KAGGLE))
    assert isinstance(found.task, TaggingTask)
    assert found.sentence == "2 sentences with tags of words: geo 1, per 1"
    examples = list(found.task.reader.rows("train"))
    assert [each.words for each in examples] == [("Ada", "came", "."), ("'s", "Old", "York, NY")]
    assert [each.label for each in examples] == [("B-per", "O", "O"), ("O", "B-geo", "I-geo")]
    assert [each.id for each in examples] == ["Sentence: 1", "Sentence: 2"]


@pytest.mark.parametrize("header", ["sentence_id,words,labels", "sent_id,token,ner", "SENTENCE_IDX,Word,tag"])
def test_every_row_may_name_its_sentence(header: str, here: Path) -> None:
    rows = ["7,Ada,B-PER", "7,came,O", "8,in,O", "8,York,B-LOC"]
    sentences = list(read_sentences(_write(here / "t.csv", "\n".join([header, *rows, ""]))))
    assert [(each.id, each.words, each.document) for each in sentences] == [
        ("7", ("Ada", "came"), 0),
        ("8", ("in", "York"), 1),
    ]


def test_new_words_need_no_tags(here: Path) -> None:
    task = guess(_write(here / "ner.csv", _KAGGLE)).task
    new = _write(here / "new.csv", "sentence_id,word\n1,Ada\n1,Lovelace\n2,left\n")
    examples = list(task.reader.read(new))
    assert [(each.id, each.words, each.label) for each in examples] == [
        ("1", ("Ada", "Lovelace"), None),
        ("2", ("left",), None),
    ]


def test_rows_without_a_word_are_left_out(here: Path) -> None:
    (sentence,) = read_sentences(_write(here / "t.csv", "sentence_id,word,tag\n1,Ada,B-PER\n1,,O\n1,came,O\n"))
    assert sentence.words == ("Ada", "came")


def test_a_tab_separated_table_of_words_is_one_too(here: Path) -> None:
    text = "sentence_id\tword\ttag\n1\tAda\tB-PER\n1\tcame\tO\n2\tOld\tB-LOC\n"
    assert [each.words for each in read_sentences(_write(here / "t.tsv", text))] == [("Ada", "came"), ("Old",)]
    assert isinstance(guess(here / "t.tsv").task, TaggingTask)
    columns = _write(here / "c.tsv", "Ada\tB-PER\ncame\tO\n\nOld\tB-LOC\n")
    assert [each.words for each in read_sentences(columns)] == [("Ada", "came"), ("Old",)]


def test_ids_in_place_of_words_are_refused(here: Path) -> None:
    path = _write(here / "t.conll", "0 Ada B-PER\n0 came O\n1 Old B-LOC\n")
    fails("the first column has numbers alone, and no words. Words come first", BAD_DATA, path)


def test_sentences_of_other_documents_may_have_the_same_number(here: Path) -> None:
    rows = "".join(f"d{document},0,word{document},B-X\n" for document in range(3))
    found = list(read_sentences(_write(here / "t.csv", f"doc,sentence_id,word,tag\n{rows}")))
    assert [each.words for each in found] == [("word0",), ("word1",), ("word2",)]


def test_the_first_row_may_name_the_document_too(here: Path) -> None:
    rows = "d1,s1,Peter,B-X\n,,came,O\n,s2,Ada,B-X\nd2,s1,left,O\n"
    found = list(read_sentences(_write(here / "t.csv", f"doc,sentence_id,word,tag\n{rows}")))
    assert [each.words for each in found] == [("Peter", "came"), ("Ada",), ("left",)]


def test_empty_rows_and_a_wrong_tag_do_not_hide_the_table(here: Path) -> None:
    rows = "1,Ada,B-PER\n1,came,O\n,,\n2,Old,B-LOC\n2,York,person\n"
    path = _write(here / "t.csv", f"sentence_id,word,tag\n{rows}")
    fails('^t.csv, line 6: "person" is not a tag', BAD_DATA, path)
    _write(here / "t.csv", f"sentence_id,word,tag\n{rows}".replace("person", "I-LOC"))
    task = guess(path).task
    other = _write(here / "dev.csv", "sentence_id,word,tag\n1,Ada,O\n,,\n1,came,B-ORG\n")
    with pytest.raises(BertkitError, match=r'dev.csv, line 4: unknown tag "B-ORG"'):
        list(task.with_files(dev=[other]).reader.rows("dev"))


def test_a_text_beside_a_number_of_tokens_is_a_text(here: Path) -> None:
    task = guess(_write(here / "ner.csv", _KAGGLE)).task
    new = _write(here / "new.csv", "id,sentence,tokens\n1,Ada runs home .,4\n")
    (example,) = task.reader.read(new)
    assert (example.id, example.words) == ("1", ("Ada", "runs", "home", "."))


def test_wrong_rows_are_named(here: Path) -> None:
    rows = "".join(f"{row // 5},film {row},O\n" for row in range(100))
    table = _write(here / "t.csv", f"sentence_id,word,tag\n{rows}30,Ada,person\n")
    fails('^t.csv, line 102: "person" is not a tag, such as O, B-TYPE or I', BAD_DATA, table)
    nameless = _write(here / "n.csv", "sentence_id,word,tag\n,Ada,B-PER\n")
    with pytest.raises(BertkitError, match=r'^n.csv, line 2: "sentence_id" is empty in the first row'):
        list(read_sentences(nameless))


def test_words_with_classes_are_no_tags(here: Path) -> None:
    """A word in its sentence, as in tables of senses."""
    rows = "".join(f"the bank {row} was long,bank,{'river' if row % 2 else 'money'}\n" for row in range(40))
    table = _write(here / "senses.csv", f"sentence,word,label\n{rows}")
    assert find_word_columns(Table(table)) is None
    assert isinstance(guess(table).task, TextClassificationTask)
