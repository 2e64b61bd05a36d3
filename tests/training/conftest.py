"""What two processes under torchrun have computed, once for all tests of distributed training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.training.two_processes import SHARDS, Results

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def two_process_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("two_processes")


@pytest.fixture(scope="session")
def two_process_results(two_process_folder: Path) -> Results:
    """The results of ``two_processes.py``."""
    file = two_process_folder / "results.json"
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
    results: Results = json.loads(file.read_text())
    return results


@pytest.fixture(scope="session")
def shards(two_process_results: Results, two_process_folder: Path) -> Path:
    """The folder of a sharded checkpoint that both processes have written after 5 steps."""
    assert two_process_results
    return two_process_folder / SHARDS
