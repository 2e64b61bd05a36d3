"""Compiling, keeping and loading the passes, and machines where that is impossible."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bertkit.kernels import fused

needs_compiler = pytest.mark.skipif(not fused.is_compiled(), reason="no C compiler with OpenMP on this machine")


@pytest.fixture(autouse=True)
def no_cached_library() -> Iterator[None]:
    fused._library.cache_clear()
    yield
    fused._library.cache_clear()


@pytest.fixture
def one_function(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of all passes, which take the compiler ten seconds on a busy machine, one function is compiled."""
    source = tmp_path_factory.mktemp("source") / "one.c"
    source.write_text("void one_function(void) {}\n")
    monkeypatch.setattr(fused, "_SOURCES", (str(source),))
    monkeypatch.setattr(fused, "_SIGNATURES", {"one_function": ()})


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")
def test_where_there_is_a_compiler_the_functions_are_compiled(tmp_path: Path) -> None:
    """Without this test an error in the C files would only skip the others."""
    empty = ("cc", "-fopenmp", "-x", "c", "-", "-o", str(tmp_path / "empty"))
    if subprocess.run(empty, input=b"int main(void) { return 0; }", capture_output=True, check=False).returncode:
        pytest.skip("the C compiler has no OpenMP")
    assert fused.is_compiled()


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_the_compiled_file_is_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fused._library() is not None
    (kept,) = (tmp_path / "bertkit").glob("fused-*.so")
    fused._library.cache_clear()
    monkeypatch.setattr(fused, "_COMPILER", "false")
    monkeypatch.setattr(fused, "_fingerprint", lambda: kept.stem.removeprefix("fused-"))
    assert fused._library() is not None


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_a_damaged_file_or_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bertkit").mkdir()
    (tmp_path / "bertkit" / f"fused-{fused._fingerprint()}.so").write_bytes(b"no library")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fused._library() is not None
    fused._library.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "bertkit" / "no" / "folder"))
    (tmp_path / "bertkit" / "no").write_text("a file where a folder should be")
    assert fused._library() is not None


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory")
@pytest.mark.usefixtures("one_function")
def test_where_files_cannot_be_executed_they_are_loaded_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load = ctypes.CDLL

    def refuse(path: str) -> ctypes.CDLL:
        """As the dynamic loader does on a file system that is mounted with ``noexec``."""
        if path.startswith(str(tmp_path)):
            raise OSError(f"{path}: failed to map segment from shared object")
        return load(path)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    for _ in range(2):  # compiled, then found
        library = fused._library()
        assert library is not None
        assert library.one_function() is None
        fused._library.cache_clear()
    assert len(list((tmp_path / "bertkit").glob("fused-*.so"))) == 1
    # Another library is not taken for the first one.
    source = tmp_path / "other.c"
    source.write_text("int other_function(void) { return 7; }\n")
    monkeypatch.setattr(fused, "_SOURCES", (str(source),))
    monkeypatch.setattr(fused, "_SIGNATURES", {})
    library = fused._library()
    assert library is not None
    assert library.other_function() == 7


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_a_python_without_files_in_memory_has_no_library_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> ctypes.CDLL:
        raise OSError(f"{path}: failed to map segment from shared object")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert fused._library() is None


@pytest.mark.parametrize("command", ["false", "no-such-compiler"])
def test_without_a_compiler_there_is_no_library(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fused, "_COMPILER", command)
    assert not fused.is_compiled()
    assert "no working C compiler" in fused.explain()


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_threads_that_need_it_at_once_compile_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled: list[Path] = []
    compile_file = fused._compile

    def count(path: Path) -> None:
        compiled.append(path)
        compile_file(path)

    monkeypatch.setattr(fused, "_compile", count)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: fused._library(), range(4)))
    assert None not in found
    assert len(compiled) == 1


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_a_damaged_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "bertkit").mkdir()
    file = tmp_path / "bertkit" / f"fused-{fused._fingerprint()}.so"
    file.write_bytes(b"no library")
    assert fused.is_compiled()
    content = file.read_bytes()
    assert content.startswith(b"\x7fELF")
    fused._library.cache_clear()
    file.unlink()  # the file that is loaded keeps its length
    file.write_bytes(content[:8192])  # to load it would end this process
    assert fused.is_compiled()
    assert len(file.read_bytes()) == len(content)


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_processes_that_need_it_at_once_compile_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one has looked for the file before the first has written it, and waits for the lock."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled: list[Path] = []
    compile_file, is_intact, answers = fused._compile, fused._is_intact, iter([False])
    assert fused.is_compiled()
    fused._library.cache_clear()

    def count(path: Path) -> None:
        compiled.append(path)
        compile_file(path)

    monkeypatch.setattr(fused, "_compile", count)
    monkeypatch.setattr(fused, "_is_intact", lambda path: next(answers, None) is None and is_intact(path))
    assert fused.is_compiled()
    assert not compiled


@needs_compiler
def test_another_compiler_compiles_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = fused._fingerprint()
    (tmp_path / "cc").write_text("#!/bin/sh")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fused._fingerprint() != here


@needs_compiler
@pytest.mark.usefixtures("one_function")
def test_a_library_without_the_functions_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_SIGNATURES", {"no_such_function": ()})
    assert not fused.is_compiled()


def test_missing_sources_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_SOURCES", (tmp_path / "absent.c",))
    monkeypatch.setattr(fused, "_COMPILER", "false")
    assert not fused.is_compiled()


def test_another_processor_compiles_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here = fused._fingerprint()
    monkeypatch.setattr(fused, "_PROCESSOR", ())
    assert fused._fingerprint() != here
