"""The verb as a shell sees it, alone and by several processes that torchrun has started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BERTKIT = ["-m", "bertkit", "reproduce", "figure5", "--scale", "smoke"]
SMALL = ["--set", "steps=4", "limit=16", "dev_limit=13", "corpus_megabytes=0.3"]


def run(command: list[str], data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command, "--data", str(data)], capture_output=True, text=True, timeout=240, check=False
    )


def test_two_processes_pretrain_together_and_divide_the_rest(data_folder: Path, tmp_path: Path) -> None:
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", "2", *BERTKIT]
    found = run([*torchrun, "-o", str(tmp_path / "out"), *SMALL], data_folder)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("Left to right, 2/2") == 1, "one process speaks for both"
    assert found.stdout.splitlines()[0] == "Figure 5. MNLI accuracy by steps of pre-training"
    assert len(list((tmp_path / "out" / "finetuning").glob("*/glue-mnli/results.json"))) == 4
    record = json.loads((tmp_path / "out" / "pretraining" / "ltr" / "run.json").read_text())
    assert record["ended"] == "done"


def test_the_plan_needs_no_folder(data_folder: Path) -> None:
    found = run([*BERTKIT, "--plan", "--json"], data_folder)
    assert found.returncode == 0, found.stderr
    assert [each["name"] for each in json.loads(found.stdout)["pretrainings"]] == ["bert-base", "ltr"]


def test_without_a_folder_or_data_it_says_what_to_give(data_folder: Path, tmp_path: Path) -> None:
    assert run(BERTKIT, data_folder).stderr == "error: reproduce needs -o OUT, or --plan.\n"
    missing = run([*BERTKIT, "-o", str(tmp_path)], tmp_path / "nowhere")
    assert missing.returncode == 2
    assert missing.stderr == f"error: no file or folder at {tmp_path / 'nowhere'}.\n"
