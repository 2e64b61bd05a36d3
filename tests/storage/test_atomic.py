"""Files and folders that are complete or absent, whatever fails while they are written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.storage.atomic import (
    read_json,
    read_object,
    recoverable_path,
    remove_folder,
    remove_temporaries,
    write_file,
    write_folder,
    write_json,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_json_is_written_and_read(tmp_path: Path) -> None:
    value = {"한글": [1, 2.5, None, True], "nested": {"a": "ü"}}
    write_json(tmp_path / "value.json", value)
    assert read_json(tmp_path / "value.json") == value
    assert names(tmp_path) == ["value.json"]


def test_a_failed_write_of_a_file_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("incomplete")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BertkitError, match=r"cannot write .*a\.txt: No space left on device\."):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model"
    write_folder(path, lambda folder: (folder / "a.txt").write_text("old"))
    write_folder(path, lambda folder: (folder / "b.txt").write_text("new"))
    assert names(path) == ["b.txt"]
    assert names(tmp_path) == ["model"]


def test_two_writers_of_one_file_do_not_mix_their_contents(tmp_path: Path) -> None:
    """Threads have one process number, and so may processes of two containers that share a folder."""
    path = tmp_path / "a.txt"

    def write_slowly(temporary: Path) -> None:
        temporary.write_text("first, ")
        write_file(path, lambda other: other.write_text("second"))
        with temporary.open("a") as file:
            file.write("of the first")

    write_file(path, write_slowly)
    assert path.read_text() == "first, of the first"
    assert names(tmp_path) == ["a.txt"]


def test_a_failed_write_of_a_folder_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "model"
    write_folder(path, lambda folder: (folder / "a.txt").write_text("old"))

    def fail(folder: Path) -> None:
        (folder / "a.txt").write_text("incomplete")
        raise MemoryError

    with pytest.raises(MemoryError):
        write_folder(path, fail)
    assert (path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_a_file_with_the_name_of_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    with pytest.raises(BertkitError, match="cannot write"):
        write_folder(tmp_path / "model", lambda folder: None)
    assert (tmp_path / "model").read_text() == "mine"


def test_a_backup_is_found_and_renamed_to_its_name(tmp_path: Path) -> None:
    (tmp_path / ".bertkit-old-model").mkdir()
    assert recoverable_path(tmp_path / "model") == tmp_path / ".bertkit-old-model"
    remove_temporaries(tmp_path)
    assert names(tmp_path) == ["model"]
    assert recoverable_path(tmp_path / "model") == tmp_path / "model"


def test_only_temporary_files_and_obsolete_backups_are_deleted(tmp_path: Path) -> None:
    for name in (".bertkit-tmp-12-model", ".bertkit-old-model", "model", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / ".bertkit-tmp-13-run.json").write_text("incomplete")
    (tmp_path / ".bertkit-tmp-14-link").symlink_to(tmp_path / "other")
    remove_temporaries(tmp_path)
    assert names(tmp_path) == ["model", "other"]


def test_a_folder_is_removed(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", lambda folder: (folder / "a.txt").write_text("old"))
    remove_folder(tmp_path / "model")
    assert names(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"{} x", rb'["\ud800"]'])
def test_the_error_of_broken_json_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(BertkitError, match=r"run\.json is not readable JSON") as caught:
        read_json(tmp_path / "run.json")
    assert caught.value.exit_code == 3


def test_a_character_that_json_spells_in_two_halves_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(rb'["\ud83d\ude00"]')
    assert read_json(tmp_path / "run.json") == ["\U0001f600"]


def test_the_error_of_missing_json_and_of_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"run\.json is missing"):
        read_json(tmp_path / "run.json")
    (tmp_path / "run.json").mkdir()
    with pytest.raises(BertkitError, match=r"run\.json is not readable JSON: .*directory"):
        read_json(tmp_path / "run.json")


def test_an_object_may_be_missing_and_is_then_empty(tmp_path: Path) -> None:
    assert read_object(tmp_path / "run.json", missing_ok=True) == {}
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(BertkitError, match=r"run\.json is not a JSON object"):
        read_object(tmp_path / "run.json", missing_ok=True)


def test_a_file_is_flushed_to_disk_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watch_fsync(descriptor: int) -> None:
        events.append(f"fsync {Path(f'/proc/self/fd/{descriptor}').readlink().name.partition('-')[0]}")
        fsync(descriptor)

    def watch_replace(source: Path, target: Path) -> None:
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watch_fsync)
    monkeypatch.setattr(os, "replace", watch_replace)
    write_json(tmp_path / "a.json", {})
    assert events == ["fsync .bertkit", "rename", f"fsync {tmp_path.name.partition('-')[0]}"]
