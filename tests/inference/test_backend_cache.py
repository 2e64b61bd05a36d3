from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from bertkit.inference import backend_cache
from bertkit.inference.backend_cache import BackendCache


def test_what_was_remembered_is_found_by_another_process(tmp_path: Path) -> None:
    BackendCache(tmp_path / "a" / "backends.json").remember("float32 384/12/1536", "oneDNN")
    BackendCache(tmp_path / "a" / "backends.json").remember("bfloat16 384/12/1536", "PyTorch")
    again = BackendCache(tmp_path / "a" / "backends.json")
    assert (again.find("float32 384/12/1536"), again.find("bfloat16 384/12/1536")) == ("oneDNN", "PyTorch")
    assert again.find("float32 768/12/3072") is None


def test_what_another_machine_measured_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = BackendCache(tmp_path / "backends.json")
    cache.remember("float32", "oneDNN")
    monkeypatch.setattr(backend_cache, "processor_name", lambda: "another chip")
    assert cache.find("float32") is None
    cache.remember("float32", "PyTorch")
    monkeypatch.undo()
    assert cache.find("float32") == "oneDNN"


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', "{}", "\x00\xff"])
def test_a_damaged_file_counts_as_empty_and_is_replaced(tmp_path: Path, content: str) -> None:
    cache = BackendCache(tmp_path / "backends.json")
    cache.file.write_text(content, encoding="latin-1")
    assert cache.find("float32") is None
    cache.remember("float32", "oneDNN")
    assert cache.find("float32") == "oneDNN"


def test_values_of_another_type_are_not_used(tmp_path: Path) -> None:
    cache = BackendCache(tmp_path / "backends.json")
    cache.remember("float32", "oneDNN")
    text = cache.file.read_text(encoding="utf-8")
    for damaged in (text.replace('"oneDNN"', "7"), text.replace('{\n    "float32": "oneDNN"\n  }', "[]")):
        assert damaged != text
        cache.file.write_text(damaged, encoding="utf-8")
        assert cache.find("float32") is None


def test_a_file_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = BackendCache(tmp_path / "file" / "backends.json")
    cache.remember("float32", "oneDNN")
    assert cache.find("float32") is None


def test_the_file_is_in_the_cache_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert BackendCache.of_user().file == tmp_path / "bertkit" / "backends.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert BackendCache.of_user().file == tmp_path / "home" / ".cache" / "bertkit" / "backends.json"


def test_without_a_home_the_file_is_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert BackendCache.of_user().file == tmp_path / "bertkit" / "backends.json"
