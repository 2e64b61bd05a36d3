"""How a file is read, by its name, and the text files of a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertkit.errors import BAD_DATA, WRONG_USAGE, BertkitError
from bertkit.formats.text_files import TextFiles, check_text_file, find_text_files


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("README", "txt"),
        ("A.TXT", "txt"),
        ("wiki_00.bz2", "txt"),
        ("sys.log.gz", "txt"),
        ("a.jsonl.zst", "jsonl"),
        ("a.NDJSON", "jsonl"),
        ("a.parquet", "parquet"),
        ("enwiki-latest-pages-articles.xml.bz2", "mediawiki"),
        ("CC-MAIN-1.warc.wet.gz", "wet"),
        ("a.htm", "html"),
        ("README.md.xz", "markdown"),
    ],
)
def test_the_name_says_the_kind(tmp_path: Path, name: str, kind: str) -> None:
    assert check_text_file(touch(tmp_path / name)) == kind


def test_missing_files_and_folders_are_an_error(tmp_path: Path) -> None:
    touch(tmp_path / "reviews.txt")
    with pytest.raises(BertkitError, match=r'no file at .*Did you mean "reviews.txt"\?') as caught:
        check_text_file(tmp_path / "review.txt")
    assert caught.value.exit_code == BAD_DATA
    with pytest.raises(BertkitError, match="There is no folder"):
        check_text_file(tmp_path / "nowhere" / "a.txt")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BertkitError, match="is a folder"):
        check_text_file(tmp_path / "folder")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.docx", r"pandoc -t plain /\S*/a\.docx -o /\S*/a\.txt$"),
        ("a.pdf", r"pdftotext /\S*/a\.pdf /\S*/a\.txt$"),
        ("a b.pdf", r"pdftotext '/.*/a b\.pdf' '/.*/a b'\.txt$"),
        ("a.doc", r"soffice --headless --convert-to txt --outdir /\S* /\S*/a\.doc$"),
        ("a.csv", r"read_csv\(sys.*' /\S*/a\.csv /\S*/a\.jsonl$"),
        ("v1.2.tsv.gz", r"read_table\(sys.*' /\S*/v1\.2\.tsv\.gz /\S*/v1\.2\.jsonl$"),
        ("a.warc.gz", "Use the WET file"),
        (
            "a.png",
            r"is not a file of text\. bertkit reads \.txt .* \.zst\. If .* let its name end in \.txt\.$",
        ),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path: Path, name: str, advice: str) -> None:
    with pytest.raises(BertkitError, match=advice) as caught:
        check_text_file(touch(tmp_path / name))
    assert caught.value.exit_code == WRONG_USAGE


def test_a_name_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        (tmp_path / name).write_text("Some words.")
    except OSError:
        pytest.skip("this file system has no such names")
    with pytest.raises(BertkitError, match=r"has a name that is not UTF-8, which no record can hold\. Rename it\.$"):
        check_text_file(find_text_files([tmp_path]).files[0])


def test_a_folder_is_its_text_files_in_sorted_order(tmp_path: Path) -> None:
    kept = [touch(tmp_path / "in" / name) for name in ("AA/wiki_00", "AB/wiki_01.bz2", "b.txt", "c/a.md", "d.jsonl.gz")]
    skipped = [touch(tmp_path / "in" / name) for name in ("LICENSE", "c/a.png", "e.pdf")]
    for hidden in (".git/config.txt", ".a.txt"):
        touch(tmp_path / "in" / hidden)
    named = touch(tmp_path / "z.txt")
    found = find_text_files([named, tmp_path / "in"])
    assert found == TextFiles(files=(named, *kept), skipped=tuple(skipped))
    assert found.describe_skipped() == [f"skipped 3 files without text: {', '.join(map(str, skipped))}"]
    assert find_text_files([named]).describe_skipped() == []


def test_a_folder_without_text_is_an_error(tmp_path: Path) -> None:
    touch(tmp_path / "a.png")
    with pytest.raises(BertkitError, match="has no file of text among 1 file") as caught:
        find_text_files([tmp_path])
    assert caught.value.exit_code == BAD_DATA


def test_links_to_folders_are_listed_and_links_to_nothing_are_errors(tmp_path: Path) -> None:
    touch(tmp_path / "in" / "a.txt")
    touch(tmp_path / "elsewhere" / "b.txt")
    for name, target in (("texts", "elsewhere"), ("loop", "in")):
        (tmp_path / "in" / name).symlink_to(tmp_path / target, target_is_directory=True)
    found = find_text_files([tmp_path / "in"])
    assert found.files == (tmp_path / "in" / "a.txt",)
    links = f"{tmp_path / 'in' / 'loop'}, {tmp_path / 'in' / 'texts'}"
    assert found.describe_skipped() == [f"skipped links to folders, which may be named too: {links}"]
    (tmp_path / "in" / "c.txt").symlink_to(tmp_path / "nowhere.txt")
    assert find_text_files([tmp_path / "in"]).files[1] == tmp_path / "in" / "c.txt", "and reading it fails"


def test_the_vocabulary_of_a_tokenizer_is_no_text(tmp_path: Path) -> None:
    texts = [touch(tmp_path / name) for name in ("a/vocab.txt", "tok/b.txt")]
    others = [touch(tmp_path / "tok" / name) for name in ("tokenizer.json", "train.log", "vocab.txt")]
    found = find_text_files([tmp_path])
    assert found.files == tuple(texts)
    assert found.skipped == tuple(others)
