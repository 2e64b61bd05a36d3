"""embed and search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.workspace import run, run_json

from bertkit.cli import app


def test_vectors_are_made_and_searched(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors, reviews = tmp_path / "v.npy", workspace / "reviews.csv"
    run("embed", workspace / "run", reviews, "-o", vectors, "--layers", "-2,-1", "--pool", "max", "--normalize")
    messages = capsys.readouterr().err
    assert "reviews.csv: text = review" in messages
    assert "99 vectors of 12 numbers" in messages
    np.testing.assert_allclose(np.linalg.norm(np.load(vectors), axis=1), 1, atol=1e-5)
    run("search", vectors, "river stone", "--model", workspace / "run", "--top-k", 3, "--texts", reviews)
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].split() == ["row", "cosine", "text"]
    found = run_json(capsys, "search", vectors, "river stone", "--model", workspace / "run", "--json")
    assert len(found) == 10
    assert set(found[0]) == {"row", "score", "query", "text"}


def test_another_model_is_one_line(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = tmp_path / "v.npy"
    run("embed", workspace / "run", workspace / "reviews.csv", "-o", vectors, "--quiet")
    assert app.run(["search", str(vectors), "river", "--model", str(workspace / "tuned")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "was made with another model" in line
