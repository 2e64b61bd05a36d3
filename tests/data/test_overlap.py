"""Texts of evaluation files that occur in a corpus."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertkit.data.ngrams import NgramHasher
from bertkit.data.overlap import EvaluationTexts
from bertkit.errors import BertkitError

THIRTEEN = "the quick brown fox jumps over a lazy dog and then it sleeps"
OTHER = "a text of its own that has more than thirteen words and is not there"


def occurs(texts: EvaluationTexts, *chunks: str) -> bool:
    texts.start_document()
    found = [texts.occur_in(chunk) for chunk in chunks]
    return any(found)


def write_table(path: Path, sentences: list[str]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"sentence": sentences, "label": ["x"] * len(sentences)}), path)
        return
    if path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl", reason="install openpyxl").Workbook()
        for row in (["sentence", "label"], *([each, "x"] for each in sentences)):
            book.active.append(row)
        book.save(path)
        return
    if path.suffix == ".csv":  # with a line end inside each text
        path.write_text("sentence,label\n" + "".join(f'"{each.replace(" ", chr(10), 1)}",1\n' for each in sentences))
        return
    lines = {".jsonl", ".ndjson"} & set(path.suffixes) or path.stem == "lines"
    rows = [json.dumps({"sentence": each, "label": 1}) if lines else f"{each}\t1" for each in sentences]
    content = (
        json.dumps({"data": [{"texts": sentences}]}) if ".json" in path.suffixes and not lines else "\n".join(rows)
    )
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())


@pytest.mark.parametrize(
    "name",
    [
        *("dev.tsv", "dev.jsonl", "dev.jsonl.gz", "dev.ndjson", "dev.json", "dev.json.gz", "lines.json"),
        *("dev.parquet", "dev.csv", "dev.xlsx"),
    ],
)
def test_texts_of_every_format_are_found_and_counted(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_table(path, [THIRTEEN, "too short", OTHER, THIRTEEN + " again"])
    texts = EvaluationTexts([path])
    assert not occurs(texts, "Nothing of it. " * 9)
    assert occurs(texts, "Before. The quick, brown fox -- jumps over a lazy dog,", "and then it sleeps. After.")
    assert not occurs(texts, THIRTEEN.rpartition(" ")[0])
    (report,) = texts.reports()
    assert (report.texts, report.found) == (3, 2)
    assert report.line() == f"{path}: 2 of 3 texts of 13 words or more are in the corpus (66.7%)"


def test_words_of_two_documents_are_no_sequence(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    path.write_text(THIRTEEN)
    texts = EvaluationTexts([path])
    assert not occurs(texts, THIRTEEN[:30])
    assert not occurs(texts, THIRTEEN[30:])
    assert texts.reports()[0].found == 0


def test_several_files_and_files_without_long_texts(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    for path, text in zip(paths, (THIRTEEN, "short", f"{OTHER}\n{THIRTEEN}\n"), strict=True):
        path.write_text(text)
    texts = EvaluationTexts(paths)
    assert occurs(texts, THIRTEEN)
    assert [(each.texts, each.found) for each in texts.reports()] == [(1, 1), (0, 0), (2, 1)]
    assert EvaluationTexts([]).reports() == ()
    assert not occurs(EvaluationTexts([]), THIRTEEN)
    assert not occurs(EvaluationTexts([paths[1]]), THIRTEEN)


def test_json_may_be_divided_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(f'{{"version": "1.1",\n "data": ["{THIRTEEN}"]}}')
    assert occurs(EvaluationTexts([path]), THIRTEEN)


@pytest.mark.parametrize("name", ["dev.json", "dev.jsonl"])
def test_a_file_that_is_not_json_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("{")
    with pytest.raises(BertkitError, match="is not JSON that can be read"):
        EvaluationTexts([path])


def test_without_evaluation_texts_a_corpus_is_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing would be most of the time of a pass that looks for duplicates alone."""
    monkeypatch.setattr(NgramHasher, "add", None)
    assert not occurs(EvaluationTexts(()), THIRTEEN)
