"""embed and search."""

from __future__ import annotations

import io
import shlex
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


def test_an_empty_row_has_a_vector_and_is_reported(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.csv").write_text("text,n\nriver stone,1\n,2\nearly garden,3\n")
    run("embed", workspace / "run", tmp_path / "texts.csv", "-o", tmp_path / "v.npy", "--text", "text")
    assert len(np.load(tmp_path / "v.npy")) == 3
    assert "1 row of texts.csv has an empty text; the vector of one says nothing" in capsys.readouterr().err


def test_the_lines_of_stdin_have_the_vectors_of_a_file(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "river stone\n\nna\u00efve garden\n".encode()
    (tmp_path / "texts.txt").write_bytes(content)
    run("embed", workspace / "run", tmp_path / "texts.txt", "-o", tmp_path / "file.npy", "--quiet")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
    run("embed", workspace / "run", "-", "-o", tmp_path / "stream.npy")
    assert (tmp_path / "stream.npy").read_bytes() == (tmp_path / "file.npy").read_bytes()
    assert "--texts" not in capsys.readouterr().err, "there is no file of the texts to name"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"river\ncaf\xe9\n")))
    assert app.run(["embed", str(workspace / "run"), "-", "-o", str(tmp_path / "other.npy")]) == 3
    assert "error: stdin, line 2: byte 4 of the line is not UTF-8" in capsys.readouterr().err


def test_another_model_is_one_line(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = tmp_path / "v.npy"
    run("embed", workspace / "run", workspace / "reviews.csv", "-o", vectors, "--quiet")
    assert app.run(["search", str(vectors), "river", "--model", str(workspace / "tuned")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "was made with another model" in line


def test_the_next_command_reads_the_texts_in_their_encoding(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_bytes(b"river stone\ncaf\xe9\n")
    vectors = tmp_path / "v.npy"
    run("embed", workspace / "run", tmp_path / "texts.txt", "-o", vectors, "--encoding", "cp1252")
    (line,) = (each for each in capsys.readouterr().err.splitlines() if "bertkit search" in each)
    program, *arguments = shlex.split(line[line.index("bertkit") :])
    assert program == "bertkit"
    run(*arguments)
    assert "caf\u00e9" in capsys.readouterr().out
