"""fill and predict."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.workspace import run, run_json

from bertkit.cli import app
from bertkit.task_types.text_reader import TextExample, TextReader


def test_masks_are_filled(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    masks = run_json(capsys, "fill", workspace / "run", "River [MASK] early [MASK].", "--top-k", 3, "--json")
    assert [len(fillings) for fillings in masks] == [3, 3]
    run("fill", workspace / "run", "River [MASK].")
    assert capsys.readouterr().out.splitlines()[0].split() == ["guess", "probability"]


def test_the_help_shows_both_masks(capsys: pytest.CaptureFixture[str]) -> None:
    """The renderer of the help takes words in brackets for styles."""
    run("fill", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "[MASK]" in shown
    assert "<mask>" in shown


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt", ".parquet"])
def test_every_row_of_a_file_is_predicted(workspace: Path, tmp_path: Path, suffix: str) -> None:
    run("predict", workspace / "tuned", workspace / "reviews.csv", "-o", tmp_path / f"out{suffix}", "--quiet")
    assert [path.name for path in tmp_path.iterdir()] == [f"out{suffix}"]
    if suffix != ".parquet":
        lines = (tmp_path / f"out{suffix}").read_text().splitlines()
        assert len(lines) == 99 + (suffix in (".csv", ".tsv"))


def test_a_stream_is_predicted(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", stream_of(b"river stone\nearly garden\n"))
    capsys.readouterr()
    run("predict", workspace / "tuned", "-", "-o", "-", "--quiet")
    predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in predictions] == ["1", "2"]
    assert {each["label"] for each in predictions} <= {"bad", "good"}


def stream_of(content: bytes) -> io.TextIOWrapper:
    """A stdin as the C locale decodes it."""
    return io.TextIOWrapper(io.BytesIO(content), encoding="ascii", errors="surrogateescape")


def test_a_stream_is_utf8_whatever_the_locale(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    read_line = TextReader.read_line

    def note(reader: TextReader, name: str, line: str) -> TextExample:
        seen.append(line)
        return read_line(reader, name, line)

    monkeypatch.setattr(TextReader, "read_line", note)
    monkeypatch.setattr("sys.stdin", stream_of("\ufeffn\u00efve \u5b66\r\nstone".encode()))
    run("predict", workspace / "tuned", "-", "-o", "-", "--quiet")
    assert seen == ["n\u00efve \u5b66", "stone"]
    monkeypatch.setattr("sys.stdin", stream_of(b"river\ncaf\xe9\n"))
    assert app.run(["predict", str(workspace / "tuned"), "-", "-o", "-", "--quiet"]) == 3
    assert "error: stdin, line 2: byte 4 of the line is not UTF-8" in capsys.readouterr().err


def test_a_closed_stdin_is_one_line(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as after <&- in a shell
    assert app.run(["predict", str(workspace / "tuned"), "-", "-o", "-", "--quiet"]) == 2
    assert capsys.readouterr().err == "error: the input is -, and standard input is closed. Name a file.\n"


def test_a_list_of_runs_ends_at_the_next_option(workspace: Path, tmp_path: Path) -> None:
    words = ("--ensemble", workspace / "tuned", "-o", tmp_path / "out.csv", "--quiet")
    run("predict", workspace / "tuned", workspace / "reviews.csv", *words)
    assert (tmp_path / "out.csv").exists()


def test_an_existing_output_is_replaced_only_with_overwrite(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.csv"
    output.write_text("precious")
    words = ("predict", str(workspace / "tuned"), str(workspace / "reviews.csv"), "-o", str(output), "--quiet")
    assert app.run(words) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert output.read_text() == "precious"
    assert app.run([*words, "--overwrite"]) == 0
    assert len(output.read_text().splitlines()) == 100
