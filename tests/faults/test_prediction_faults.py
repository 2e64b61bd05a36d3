"""Predictions of a file that are killed at any time continue to the same output, byte for byte."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.tiny_bert import SENTENCES, make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.model import Model
from bertkit.storage.outputs import partial_path
from bertkit.task_types import TextClassificationTask

WORDS = " ".join(SENTENCES).split()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    torch.manual_seed(7)
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer)
    task = TextClassificationTask(name="t", metric="accuracy", labels=("dry", "wet", "odd"), max_length=41)
    model = Model(encoder, task.objectives(encoder))
    save_model(tmp_path / "run" / "model", model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    return tmp_path / "run"


def write_texts(path: Path, rows: int) -> Path:
    draw = random.Random(7)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "text"))
        writer.writerows((row, " ".join(draw.choices(WORDS, k=draw.randint(1, 20)))) for row in range(rows))
    return path


def kill_at(process: subprocess.Popen[bytes], records: Path, size: int) -> bool:
    """kill -9 once ``records`` has ``size`` bytes; false if the process ended before."""
    while process.poll() is None:
        if records.exists() and records.stat().st_size >= size:
            process.kill()
            return process.wait() != 0
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(("rows", "kills"), [(4_000, 2), pytest.param(100_000, 10, marks=pytest.mark.faults)])
def test_repeated_kills_lose_and_repeat_no_row(run: Path, tmp_path: Path, rows: int, kills: int) -> None:
    texts = write_texts(tmp_path / "texts.csv", rows)
    command = [sys.executable, "-m", "bertkit", "predict", str(run), str(texts), "--quiet", "-o"]
    subprocess.run([*command, str(tmp_path / "expected.csv")], check=True)
    expected = (tmp_path / "expected.csv").read_bytes()
    assert expected.count(b"\n") == rows + 1
    output = tmp_path / "out.csv"
    shares = sorted(random.Random(kills).random() for _ in range(kills))
    killed = [
        kill_at(subprocess.Popen([*command, str(output)]), partial_path(output), int(len(expected) * share))
        for share in shares
    ]
    assert all(killed)
    assert not output.exists()
    subprocess.run([*command, str(output)], check=True)
    assert output.read_bytes() == expected
