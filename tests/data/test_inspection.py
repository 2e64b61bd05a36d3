"""Statistics of text files, each on files made for it."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from bertkit.config.records import to_plain
from bertkit.data import sources
from bertkit.data.inspection import Counts, inspect_files
from bertkit.errors import BertkitError


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_counts_of_records(tmp_path: Path) -> None:
    texts = ["One here. Two here.", "", "  ", "One here. Two here.\n", "\x00\x07\ttab \ufffd"]
    path = write(tmp_path / "a.jsonl", "\n".join(json.dumps(text) for text in texts))
    (report,) = inspect_files([path]).files
    assert report.counts == Counts(
        documents=5,
        blank_documents=2,
        duplicates=1,
        sentences=5,
        characters=sum(map(len, texts)),
        control_characters=2,
        replacement_characters=1,
        invalid_characters=0,
    )
    assert (report.encoding, report.boundary, report.problem) == ("UTF-8", "record", "")
    assert report.histogram == [5, 0, 0, 0, 0, 0]


def test_the_boundary_and_the_encoding_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"\xef\xbb\xbfOne.\r\nTwo.\r\n\r\nThree.\r\nFour.\r\n")
    (report,) = inspect_files([path]).files
    assert report.encoding == "UTF-8 with a byte order mark"
    assert (report.boundary, report.sentence_lines) == ("blank-line", True)
    assert (report.counts.documents, report.counts.sentences) == (2, 4)


def test_bytes_that_are_not_utf8_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"good\nbad \xe9 \xff \xef\xbf\xbd\n")
    report = inspect_files([path])
    assert report.files[0].counts.invalid_characters == 2
    assert report.files[0].counts.replacement_characters == 1
    assert report.files[0].encoding == "not all UTF-8"
    assert report.problems == [f"{path}, line 2: byte 10 of the file is not valid UTF-8."]


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a.txt", "One.".encode("utf-16")),
        write(tmp_path / "b.jsonl", '"fine"\n{"text": '),
        write(tmp_path / "c.txt.gz", gzip.compress(b"One. " * 999)[:-9]),
        write(tmp_path / "d.txt", "One."),
    ]
    report = inspect_files(files)
    assert [bool(each.problem) for each in report.files] == [True, True, True, False]
    assert report.files[0].encoding == "unknown encoding"
    assert report.files[1].counts.documents == 1
    assert len([line for line in report.lines() if line.startswith("  ! ")]) == 3


def test_duplicates_are_found_across_files(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", '"x"\n"y"\n"x"\n')
    second = write(tmp_path / "b.jsonl", '"z"\n"y"\n')
    third = write(tmp_path / "c.txt", " x\n")
    report = inspect_files([first, second, third])
    assert [each.counts.duplicates for each in report.files] == [1, 1, 1]
    assert report.counts.duplicates == 3
    assert report.counts.documents == 6


def test_a_document_of_many_chunks_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 100)
    path = write(tmp_path / "a.txt", "Word and word. " * 99)
    (report,) = inspect_files([path]).files
    assert (report.counts.documents, report.counts.characters) == (1, 99 * 15)
    assert report.histogram == [0, 0, 1, 0, 0, 0]


def test_the_report_can_be_json_or_lines(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.txt", "One. Two." * count) for name, count in (("a", 1), ("b", 99))]
    report = inspect_files(files)
    assert json.loads(json.dumps(to_plain(report)))["files"][1]["counts"]["documents"] == 1
    lines = report.lines()
    assert "  2 documents, " in "\n".join(lines)
    assert next(line for line in lines if line.startswith("  below 100 ")).endswith("#")
    assert not next(line for line in lines if line.startswith("  below 10,000 ")).endswith("#")


def test_missing_files_are_an_error_before_reading(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="at least one"):
        inspect_files([])
    with pytest.raises(BertkitError, match="no file at"):
        inspect_files([write(tmp_path / "a.txt", "x"), tmp_path / "b.txt"])


@pytest.mark.parametrize("content", ["", "\n\n", '{"text": ""}\n'])
def test_a_file_without_text_is_a_problem(tmp_path: Path, content: str) -> None:
    file = write(tmp_path / ("a.jsonl" if "{" in content else "a.txt"), content)
    assert inspect_files([file]).problems == [f"{file} has no text."]


def test_what_repeats_or_is_in_evaluation_files_is_counted(tmp_path: Path) -> None:
    pytest.importorskip("datasketch")
    thirteen = "the quick brown fox jumps over a lazy dog and then it sleeps"
    long = " ".join(f"word{number}" for number in range(200))
    boilerplate = "Copyright of this text."
    path = write(
        tmp_path / "a.jsonl",
        "".join(json.dumps(f"{each}\n{boilerplate}\nshort") + "\n" for each in (thirteen, long, long + " more", "x")),
    )
    dev = write(tmp_path / "dev.tsv", f"{thirteen}\t1\n{thirteen[3:]} well\t0\n")
    report = inspect_files([path], against=[dev], near_duplicates=True)
    assert report.counts.repeated_lines == 3
    assert (report.counts.duplicates, report.counts.near_duplicates) == (0, 1)
    assert report.counts.overlapping_documents == 1
    assert f"{dev}: 1 of 2 texts of 13 words or more are in the corpus (50.0%)" in report.lines()


@pytest.mark.parametrize(("characters", "size"), [(100, 1_000), (4_000_000, 9_000), (10**9, 30_000)])
def test_the_suggested_vocabulary_grows_with_the_corpus(tmp_path: Path, characters: int, size: int) -> None:
    report = inspect_files([write(tmp_path / "a.txt", "One.")])
    report.files[0].counts.characters = characters
    assert report.vocab_size == size
    assert report.lines()[-1] == f"suggested size of the vocabulary: {size:,}"


def test_scripts_and_languages_are_drawn_for_all_files_together(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    english, russian = "The mill stood still at dawn.\n", "Старая мельница стояла тихо.\n"
    files = [
        write(tmp_path / "a.txt", english * 9),
        write(tmp_path / "b.txt", english),
        write(tmp_path / "c.txt", russian),
    ]
    report = inspect_files(files)
    assert [each.scripts for each in report.files] == [{"Latin": 207}, {"Latin": 23}, {"Cyrillic": 24}]
    assert [each.languages for each in report.files] == [{"en": 270}, {"en": 30}, {"ru": 29}]
    lines = report.lines()
    begin = lines.index("characters by script")
    assert [line.split() for line in lines[begin:-1]] == [
        ["characters", "by", "script"],
        ["Latin", "230", "#" * 40],
        ["Cyrillic", "24", "#" * 5],
        ["characters", "by", "language"],
        ["en", "300", "#" * 40],
        ["ru", "29", "#" * 4],
    ]


def test_a_script_whose_marks_make_words_is_said(tmp_path: Path) -> None:
    (tmp_path / "hi.txt").write_text("हिन्दी भाषा\n" * 9)
    (tmp_path / "en.txt").write_text("English text of some length\n" * 9)
    report = inspect_files([tmp_path / "hi.txt", tmp_path / "en.txt"])
    assert report.needs_accents == "Devanagari"
    assert any(line.startswith("Devanagari has vowels or tones") for line in report.lines())
    assert inspect_files([tmp_path / "en.txt"]).needs_accents == ""


def test_rare_scripts_are_drawn_as_one(tmp_path: Path) -> None:
    letters = "aабαאبकগகక한ア漢ㄅกა"
    lines = inspect_files([write(tmp_path / "a.txt", letters + "a" * 99)]).lines()
    begin = lines.index("characters by script")
    assert lines[begin + 1].split()[:2] == ["Latin", "100"]
    assert lines[begin + 2].split()[:2] == ["Cyrillic", "2"]
    assert lines[begin + 11].split()[:3] == ["5", "others", "5"]


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    lines = inspect_files([write(tmp_path / "a.txt", "One.")]).lines()
    assert "characters by language: not counted; they need pip install 'bertkit[clean]'" in lines
    assert "characters by script" in lines


def test_short_documents_that_repeat_count_among_the_near_duplicates(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "Two words."}\n' * 3)
    counts = inspect_files([path], near_duplicates=True).counts
    assert (counts.duplicates, counts.near_duplicates) == (2, 2)


def test_an_evaluation_file_in_another_encoding_is_to_be_converted(tmp_path: Path) -> None:
    """``corpus check`` has no ``--encoding``."""
    dev = write(tmp_path / "dev.csv", "text\ncaf\u00e9 is here\n".encode("cp1252"))
    with pytest.raises(BertkitError, match=r"dev\.csv, line 2: .* Convert the file \(iconv -f cp1252 -t UTF-8\)\.$"):
        inspect_files([write(tmp_path / "a.txt", "One.")], against=[dev])
