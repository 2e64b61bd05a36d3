"""A folder in which everything from a text file to a fine-tuned model was made by the command line, at tiny sizes."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from bertkit.cli import app

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]


def run(*words: object) -> None:
    """Run a command, which has to succeed."""
    assert app.run([str(word) for word in words]) == 0


def run_json(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """Run a command that prints JSON, and return its content."""
    capsys.readouterr()
    run(*words)
    return json.loads(capsys.readouterr().out)


def build_workspace(folder: Path) -> None:
    """Make a.txt, reviews.csv, tok, data, run.toml, the pre-training ``run`` and the fine-tuning ``tuned``."""
    generator = random.Random(7)
    documents = (
        "\n".join(" ".join(generator.choices(WORDS, k=7)).capitalize() + "." for _ in range(20)) for _ in range(13)
    )
    (folder / "a.txt").write_text("\n\n".join(documents))
    with (folder / "reviews.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "review", "label"))
        writer.writerows((row, " ".join(generator.choices(WORDS, k=5)), ("bad", "good")[row % 2]) for row in range(99))
    (folder / "run.toml").write_text("save_every = 3\n[schedule]\ndecay = 'linear'\n")
    tok, data = folder / "tok", folder / "data"
    run("tokenizer", "train", folder / "a.txt", "--vocab-size", 99, "-o", tok, "--quiet")
    run("prepare", folder / "a.txt", "--tokenizer", tok, "-o", data, "--heldout", 0.3, "--quiet")
    sizes = ("--size", "1/12/2", "--seq-length", 37, "--batch-size", 7, "--steps", 7)
    settings = ("--config", folder / "run.toml", "--set", "evaluate_every=3", "encoder.max_positions=41")
    run("pretrain", data, *sizes, *settings, "-o", folder / "run", "--quiet")
    table = ("--batch-size", 13, "--epochs", 1, "--seeds", 2)
    run("finetune", folder / "reviews.csv", "--model", folder / "run", *table, "-o", folder / "tuned", "--quiet")
