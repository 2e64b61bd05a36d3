from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import torch
from bertkit.training.memory import disable_malloc_trim

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), disable_malloc_trim(), min(faults() for _ in range(7)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc gives freed memory back, and can be told not to")
def test_steps_stop_faulting_their_pages_in() -> None:
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    before, told, after = int(answer[0]), answer[1], int(answer[2])
    assert told == "True"
    assert after < before / 10
