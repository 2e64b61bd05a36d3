"""Fixtures for tiny fine-tunings: a model with random weights, and a table."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
import torch

from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert, size
from bertkit.model import Model
from bertkit.text.wordpiece import train

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tokenizer = train([" ".join(WORDS)] * 7, vocab_size=67)
    torch.manual_seed(7)
    encoder = Bert(size("3/12/2", vocab_size=tokenizer.vocab_size, max_positions=37, intermediate_size=13))
    save_model(folder, Model(encoder, {}), tokenizer, metadata={})
    return folder


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "reviews.csv"
    draw = random.Random(7)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "review", "label"))
        for row in range(99):
            writer.writerow((row, " ".join(draw.choices(WORDS, k=5)), ("bad", "good")[row % 2]))
    return path


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fine-tuning without plots, which would take longer than the training."""
    for name in ("plot_epochs", "plot_confusion"):
        monkeypatch.setattr(f"bertkit.finetuning.run.{name}", lambda *arguments: None)
