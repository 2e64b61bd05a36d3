"""Files of fsspec: read like files of this machine, from the memory of this process."""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.compression import ByteStream
from bertkit.storage.remote import RemotePath, to_path


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system memory://, with two files."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.pipe({"/corpus/b.txt": b"some text", "/corpus/a/c.txt": b"more", "/corpus/.hidden/d.txt": b"no"})
    yield files
    files.rm("/corpus", recursive=True)


@pytest.mark.parametrize("given", ["memory://corpus/b.txt", Path("memory://corpus/b.txt")], ids=["text", "path"])
def test_a_file_is_read(memory: Any, given: str | Path) -> None:
    path = to_path(given)
    assert isinstance(path, RemotePath)
    assert str(path) == "memory://corpus/b.txt"
    assert (path.name, path.suffix, path.stat().st_size) == ("b.txt", ".txt", 9)
    assert path.is_file()
    assert path.exists()
    assert not path.is_dir()
    with path.open("rb") as file:
        file.seek(5)
        assert file.read() == b"text"
    assert pickle.loads(pickle.dumps(path)) == path


def test_an_error_while_a_file_is_read_is_one_line(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class ConnectionLost(io.BytesIO):
        """Packages have exceptions of their own, such as aiohttp's ClientPayloadError."""

        def readinto(self, buffer: Any) -> int:
            raise RuntimeError("the payload is not complete")

    monkeypatch.setattr(type(memory), "open", lambda *given, **more: ConnectionLost())
    with pytest.raises(BertkitError, match=r"b\.txt is damaged or cut off: the payload is not complete"):
        list(ByteStream(to_path("memory://corpus/b.txt")))


def test_folders_are_listed_without_hidden_files(memory: Any) -> None:
    folder = to_path("memory://corpus")
    assert isinstance(folder, RemotePath)
    assert folder.is_dir()
    assert list(map(str, folder.files_below())) == ["memory://corpus/a/c.txt", "memory://corpus/b.txt"]
    assert {path.name for path in folder.iterdir()} == {"a", "b.txt", ".hidden"}
    assert isinstance(folder / "b.txt", RemotePath)
    assert not (folder / "none.txt").exists()


def test_other_paths_are_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert to_path("a.txt") == Path("a.txt")
    assert to_path(f"file://{tmp_path}/a.txt") == tmp_path / "a.txt"
    assert to_path("file:///tmp/a%20b.txt") == Path("/tmp/a b.txt")
    assert to_path("C:/a.txt") == Path("C:/a.txt")
    with pytest.raises(BertkitError, match="s3:// names no file or folder: give the whole URL, such as s3://bucket"):
        to_path("s3://")
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "a.txt").touch()
    assert type(to_path("s3:/a.txt")) is type(Path())


def test_an_unknown_file_system_or_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(BertkitError, match=r"nosuch://bucket/a\.txt: Protocol not known: nosuch") as caught:
        to_path("nosuch://bucket/a.txt").is_file()
    assert caught.value.exit_code == 2
    real = importlib.import_module

    def without(missing: str) -> None:
        def import_module(name: str, package: str | None = None) -> Any:
            if name.partition(".")[0] == missing:
                raise ModuleNotFoundError(f"No module named '{name}'")
            return real(name, package)

        monkeypatch.setattr(importlib, "import_module", import_module)

    without("s3fs")
    with pytest.raises(BertkitError, match=r"s3://bucket/a\.txt: Install s3fs to access S3"):
        to_path("s3://bucket/a.txt").is_file()
    without("fsspec")
    with pytest.raises(BertkitError, match=r"pip install 'bertkit\[remote\]'"):
        to_path("memory://corpus/b.txt").is_file()


def test_missing_credentials_are_an_error_of_one_line(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoCredentialsError(Exception):
        """What botocore raises, which is no OSError."""

    def refuse(*_: object, **__: object) -> None:
        raise NoCredentialsError("Unable to locate\ncredentials")

    for name in ("isfile", "info", "open"):
        monkeypatch.setattr(type(memory), name, refuse)
    path = to_path("memory://corpus/b.txt")
    for call in (path.is_file, path.stat, lambda: path.open("rb")):
        with pytest.raises(BertkitError, match=r"cannot be read: Unable to locate credentials\. Is the name") as caught:
            call()
        assert caught.value.exit_code == 3


def test_a_file_is_uploaded(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("some content")
    path = to_path("memory://corpus/new/a.txt")
    assert isinstance(path, RemotePath)
    path.upload(tmp_path / "a.txt")
    assert path.read_bytes() == b"some content"

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Access Denied")

    monkeypatch.setattr(type(memory), "put_file", refuse)
    with pytest.raises(BertkitError, match=r"new/a\.txt cannot be written: Access Denied\. Is the name"):
        path.upload(tmp_path / "a.txt")
