"""Records with checksums: every changed byte of the record, and of the files beside it, is found."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.storage.checksums import (
    check_files,
    encode_checked,
    fingerprint_of,
    read_checked,
    read_checksums,
    read_record,
    require_format,
    sha256_of,
    size_of,
    write_checked,
    write_checksums,
)

RECORD = {"format": 7, "name": "한글", "values": [1, 2.5, None]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record of two files."""
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "b.txt").write_text("second")
    write_checksums(tmp_path / "record.json", RECORD)
    return tmp_path / "record.json"


def read(path: Path) -> dict[str, Any]:
    return read_checksums(path, version=7, advice="Write it again.")


def test_sha256_is_the_standard_one(tmp_path: Path) -> None:
    (tmp_path / "abc").write_text("abc")
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_hash_of_a_folder_depends_on_names_and_contents(tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.txt").write_text(label)
    listed = "".join(f"{hashlib.sha256(each.encode()).hexdigest()}  {each}/1.txt\n" for each in ("a", "b"))
    assert sha256_of(tmp_path) == hashlib.sha256(listed.encode()).hexdigest()
    assert size_of(tmp_path) == 2
    (tmp_path / "b" / "1.txt").rename(tmp_path / "b" / "2.txt")
    assert sha256_of(tmp_path) != hashlib.sha256(listed.encode()).hexdigest()


def test_a_record_has_its_own_hash_in_the_last_line(tmp_path: Path) -> None:
    text = encode_checked(RECORD)
    digest = hashlib.sha256(json.dumps(RECORD, ensure_ascii=False).encode()).hexdigest()
    assert json.loads(text) == {**RECORD, "sha256": digest}
    assert text.splitlines()[-2] == f'  "sha256": "{digest}"'
    (tmp_path / "record.json").write_text(text, encoding="utf-8")
    assert read_checked(tmp_path / "record.json") == RECORD


def test_a_record_comes_back_with_the_checksums_of_its_files(path: Path) -> None:
    record = read(path)
    assert {name: value for name, value in record.items() if name != "files"} == RECORD
    first = hashlib.sha256(b"first").hexdigest()
    assert record["files"]["a.txt"] == {"bytes": 5, "sha256": first}
    assert set(record["files"]) == {"a.txt", "b.txt"}
    check_files(path, record)


def test_every_changed_byte_of_a_record_is_found(path: Path) -> None:
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(BertkitError, match=r"record\.json") as caught:
            read(path)
        assert caught.value.exit_code == BAD_DATA


@pytest.mark.parametrize("content", ["[]", "3", '{"sha256": 3}', "{}"])
def test_other_json_is_damaged_and_the_advice_ends_the_error(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(BertkitError, match=r"does not agree with its own SHA-256\. Write it again\.$"):
        read_checked(path, "Write it again.")


def test_a_record_without_files_is_refused(path: Path) -> None:
    path.write_text(encode_checked(RECORD))
    with pytest.raises(BertkitError, match=r"record\.json is damaged: it names no files"):
        read(path)


@pytest.mark.parametrize(("record", "found"), [({"format": 6}, "6"), ({}, "1"), ({"format": "x"}, "x")])
def test_another_format_is_refused_in_one_line(tmp_path: Path, record: dict[str, Any], found: str) -> None:
    with pytest.raises(BertkitError) as caught:
        require_format(tmp_path, record, 7, "Write it again.")
    expected = f"{tmp_path} has format {found}; this version of bertkit reads format 7. Write it again."
    assert str(caught.value) == expected
    assert caught.value.exit_code == BAD_DATA


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"firs", "it has 4 bytes, and 5 were written"),
        (b"fjrst", r"its SHA-256 is not the one in record\.json"),
        (None, r"a\.txt is missing"),
    ],
)
def test_a_changed_file_is_found_if_it_is_checked(path: Path, content: bytes | None, message: str) -> None:
    file = path.with_name("a.txt")
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BertkitError, match=message):
        check_files(path, read(path))
    check_files(path, read(path), ["b.txt", "not listed"])


def test_a_name_in_the_record_is_never_followed_as_a_path(path: Path) -> None:
    outside = path.parent / "folder"
    outside.mkdir()
    record = {"files": {"folder/../a.txt": read(path)["files"]["a.txt"]}}
    with pytest.raises(BertkitError, match="is missing"):
        check_files(path, record)


def test_any_changed_byte_of_a_record_is_found(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    write_checked(file, RECORD)
    assert read_record(file) == RECORD
    content = file.read_bytes()
    for place in range(len(content)):
        for bit in (1, 16):
            file.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
            with pytest.raises(BertkitError, match=r"record\.json"):
                read_record(file)
        file.write_bytes(content[:place])
        with pytest.raises(BertkitError, match=r"record\.json"):
            read_record(file)


def test_a_record_of_an_earlier_version_has_no_hash(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text(json.dumps(RECORD), encoding="utf-8")
    assert read_record(file) == RECORD
    file.write_text(json.dumps([RECORD]), encoding="utf-8")
    with pytest.raises(BertkitError, match="is not a JSON object"):
        read_record(file)


def test_the_fingerprint_depends_on_contents_and_facts(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("7")
    (tmp_path / "texts.txt").write_text("a river")
    paths = [tmp_path / "model", tmp_path / "texts.txt"]
    first = fingerprint_of(paths, "float32")
    assert fingerprint_of(paths, "float32") == first
    assert fingerprint_of(paths, "bfloat16") != first
    (tmp_path / "model" / "weights").write_text("8")
    assert fingerprint_of(paths, "float32") != first
