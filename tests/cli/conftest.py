"""A small corpus, tokenized, for the commands that train on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit import api


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for number in range(13):
        (home / f"{number}.txt").write_text(
            f"Boat {number} leaves the harbour. It comes back on day {number + 7}. " * 9
        )
    files = sorted(home.glob("*.txt"))
    api.tokenizer_train(files, output=home / "tok", vocab_size=99, progress="quiet")
    api.prepare(files, tokenizer=home / "tok", output=home / "data", heldout=0.3, progress="quiet")
    return home / "data"
