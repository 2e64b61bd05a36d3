"""Fixtures: a tiny BERT and a tiny GPT with random weights, a table, and the shards of a small corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tiny_gpt import left_to_right as left_to_right
from tests.tiny_gpt import published as published
from tests.tiny_runs import model as model
from tests.tiny_runs import no_pictures as no_pictures
from tests.tiny_runs import table as table

import bertkit


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shards of 13 short texts."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(13):
        (folder / f"{number}.txt").write_text(
            f"Boat {number} leaves the harbour. It comes back on day {number + 7}. " * 9
        )
    files = sorted(folder.glob("*.txt"))
    bertkit.tokenizer_train(files, output=folder / "tok", vocab_size=99, progress="quiet")
    bertkit.prepare(files, tokenizer=folder / "tok", output=folder / "data", heldout=0.3, progress="quiet")
    return folder / "data"
