"""What two processes under torchrun have computed, once for all tests of distributed training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.training.two_processes import SHARDS, Results

from bertkit.storage.locks import exclusive_lock

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def two_process_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "two_processes"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def two_process_results(two_process_folder: Path) -> Results:
    """The results of ``two_processes.py``, which the first worker runs: it takes 20 seconds of both cores."""
    file = two_process_folder / "results.json"
    with exclusive_lock(two_process_folder, wait=True):
        if not file.exists():
            run_two_processes(file)
    results: Results = json.loads(file.read_text())
    return results


def run_two_processes(file: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    process = subprocess.run(
        [*torchrun, "-m", "tests.training.two_processes", str(file)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr


@pytest.fixture(scope="session")
def shards(two_process_results: Results, two_process_folder: Path) -> Path:
    """The folder of a sharded checkpoint that both processes have written after 5 steps."""
    assert two_process_results
    return two_process_folder / SHARDS
