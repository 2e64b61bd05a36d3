"""Available memory, and page faults of large blocks with and without glibc's trimming."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bertkit.machine import memory
from bertkit.machine.memory import available_memory, disable_malloc_trim, host_memory

PROGRAM = """
import resource
import torch
from bertkit.machine.memory import disable_malloc_trim

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), disable_malloc_trim(), min(faults() for _ in range(7)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc returns freed memory at once, by default")
def test_without_trimming_large_blocks_fault_no_pages_again() -> None:
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    before, disabled, after = int(answer[0]), answer[1], int(answer[2])
    assert disabled == "True"
    assert after < before / 10


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of another system has no such setting")
def test_an_older_glibc_gets_the_largest_threshold_that_it_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = []

    def mallopt(parameter: int, value: int) -> int:
        if parameter == -3 and value > 32 << 20:  # of the threshold from which blocks come from mmap
            return 0
        accepted.append((parameter, value))
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    assert disable_malloc_trim()
    assert accepted == [(-3, 32 << 20), (-1, (1 << 31) - 1)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/meminfo")
def test_available_memory_is_a_part_of_all_memory() -> None:
    total, available = host_memory()
    assert total is not None
    assert available is not None
    assert 0 < available <= total
    assert 0 < (available_memory(torch.device("cpu")) or 0) <= total


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc/meminfo")
@pytest.mark.parametrize(("limit", "expected"), [("1048576", (1048576, 1000777)), ("max", None)])
def test_memory_is_that_of_the_container(
    limit: str, expected: tuple[int, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text("48000\n")
    (tmp_path / "memory.stat").write_text("anon 40000\nfile 900\ninactive_file 200\nactive_file 1\n")
    host = host_memory()[0]
    monkeypatch.setattr(memory, "_CONTROL_GROUP", tmp_path)
    assert host_memory() == expected if expected else host_memory()[0] == host


def test_memory_is_unknown_without_meminfo(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, **_: object) -> None:
        raise FileNotFoundError(str(self))

    monkeypatch.setattr(Path, "open", fail)
    assert host_memory() == (None, None)
    assert available_memory(torch.device("cpu")) is None
