"""Preparations whose output is uploaded."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertkit.data.prepare import prepare
from bertkit.data.remote_output import RemoteOutput
from bertkit.data.shards import MANIFEST, Manifest
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.storage.remote import RemotePath
from bertkit.text.wordpiece import WordPiece, train

TEXTS = [f"The old mill stood still for {number} days. A miller counts coins." for number in range(40)]
TARGET = RemotePath("memory://bucket/data")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system memory://, and a folder for temporary files."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield files
    files.rm("/", recursive=True)


@pytest.fixture
def tokenizer() -> WordPiece:
    return train(TEXTS, vocab_size=99)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, TEXTS)))
    return tmp_path / "a.jsonl"


def uploaded(memory: Any) -> dict[str, bytes]:
    """The content of every uploaded file, by its path below the target."""
    return {name.removeprefix("/bucket/data/"): memory.cat_file(name) for name in memory.find("/bucket/data")}


def test_the_output_is_the_same_as_in_a_folder(memory: Any, file: Path, tokenizer: WordPiece, tmp_path: Path) -> None:
    manifest = prepare([file], tokenizer=tokenizer, output=TARGET)
    local = prepare([file], tokenizer=tokenizer, output=tmp_path / "data")
    assert manifest == local
    paths = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert uploaded(memory) == {path.relative_to(tmp_path / "data").as_posix(): path.read_bytes() for path in paths}
    assert not RemoteOutput(TARGET).folder.exists()


def test_the_manifest_is_uploaded_last(
    memory: Any, file: Path, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    upload = RemotePath.upload

    def upload_and_note(path: RemotePath, local: Path) -> None:
        names.append(path.name)
        upload(path, local)

    monkeypatch.setattr(RemotePath, "upload", upload_and_note)
    prepare([file], tokenizer=tokenizer, output=TARGET)
    assert names[0] == "prepare.json"
    assert names[-1] == MANIFEST
    assert names.count(MANIFEST) == 1


def test_no_folder_is_left_if_the_target_cannot_be_written(
    memory: Any, file: Path, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: RemotePath, local: Path) -> None:
        raise BertkitError("no credentials")

    monkeypatch.setattr(RemotePath, "upload", refuse)
    with pytest.raises(BertkitError, match="no credentials"):
        prepare([file], tokenizer=tokenizer, output=TARGET)
    assert not RemoteOutput(TARGET).folder.exists()


def test_a_finished_job_is_left_as_it_is(
    memory: Any, file: Path, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = prepare([file], tokenizer=tokenizer, output=TARGET)
    monkeypatch.setattr(RemotePath, "upload", None)
    assert prepare([file], tokenizer=tokenizer, output=TARGET) == manifest
    assert not RemoteOutput(TARGET).folder.exists()


def test_an_interrupted_upload_is_repeated_without_the_work(
    memory: Any, file: Path, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = RemotePath.upload

    def fail_at_shards(path: RemotePath, local: Path) -> None:
        if path.suffix == ".safetensors":
            raise BertkitError("no connection")
        upload(path, local)

    with monkeypatch.context() as patch:
        patch.setattr(RemotePath, "upload", fail_at_shards)
        with pytest.raises(BertkitError, match="no connection"):
            prepare([file], tokenizer=tokenizer, output=TARGET)
    assert MANIFEST not in uploaded(memory)
    monkeypatch.setattr("bertkit.data.prepare.work_all", None)
    assert isinstance(prepare([file], tokenizer=tokenizer, output=TARGET), Manifest)
    assert MANIFEST in uploaded(memory)


def test_other_content_is_refused_before_the_work(
    memory: Any, file: Path, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare([file], tokenizer=tokenizer, output=TARGET)
    before = uploaded(memory)
    monkeypatch.setattr("bertkit.data.prepare.work_all", None)
    message = "memory://bucket/data is not empty and was not made by this command. Choose another -o."
    with pytest.raises(BertkitError) as caught:
        prepare([file], tokenizer=tokenizer, output=TARGET, heldout=0.5)
    assert (str(caught.value), caught.value.exit_code) == (message, WRONG_USAGE)
    assert uploaded(memory) == before
    memory.pipe({"/bucket/other/a.txt": b"mine"})
    with pytest.raises(BertkitError, match="memory://bucket/other is not empty"):
        prepare([file], tokenizer=tokenizer, output=RemotePath("memory://bucket/other"))


def test_a_cluster_needs_a_folder_that_its_nodes_see(memory: Any, file: Path, tokenizer: WordPiece) -> None:
    with pytest.raises(BertkitError, match="--engine ray needs an output folder that all nodes see"):
        prepare([file], tokenizer=tokenizer, output=TARGET, engine="ray")
    assert not uploaded(memory)


def test_a_job_that_fails_gives_the_target_back(memory: Any, tmp_path: Path, file: Path, tokenizer: WordPiece) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n")
    with pytest.raises(BertkitError, match="there is no text"):
        prepare([blank], tokenizer=tokenizer, output=TARGET)
    assert not uploaded(memory)
    assert not RemoteOutput(TARGET).folder.exists()
    prepare([file], tokenizer=tokenizer, output=TARGET)
    assert MANIFEST in uploaded(memory)
