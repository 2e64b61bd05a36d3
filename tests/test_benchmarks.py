"""The GPU benchmark, run on a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "gpu.py"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_gpu_benchmark_runs_on_a_cpu(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    short = ("--device", "cpu", "--sizes", "1/12/2", "--tokens", 13, "--batch-tokens", 39, "--seconds", 0)
    process = run(*short, "--systems", "ours eager", "hugging face eager", "--json", file)
    assert process.returncode == 0, process.stderr
    record = json.loads(file.read_text())
    assert [result["system"] for result in record["results"]] == ["ours eager", "hugging face eager"]
    for result in record["results"]:
        assert (result["rows"], result["tokens"], result["memory"]) == (3, 13, None)
        assert result["sequences_per_second"] == pytest.approx(3 / result["seconds"])
        assert result["mfu"] > 0
    (correct,) = record["correctness"]
    assert correct["float32"]["cosine"] > 0.9999
    ratios = [line.split("|")[-2].strip() for line in process.stdout.splitlines() if line.startswith("| 1/12/2")]
    assert len(ratios) == 2
    assert ratios[1] == "1.00 x"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_there_is_an_error_of_one_line() -> None:
    process = run()
    assert process.returncode == 1
    assert process.stdout == ""
    assert process.stderr.startswith("error: this machine has no GPU")
    assert process.stderr.count("\n") == 1
