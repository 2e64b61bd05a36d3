from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.workspace import run


def test_the_commands_say_what_they_found(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    run("attention", workspace / "run", "-a river", "-o", tmp_path / "a.html")
    assert "1 layer of 2 heads" in capsys.readouterr().out
    run("explain", workspace / "tuned", "the river", "-o", tmp_path / "b.html")
    shown = capsys.readouterr().out
    assert "most by" in shown
    assert "left out" not in shown


def test_the_results_are_also_json(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("explain", workspace / "tuned", "a river", "-o", tmp_path / "why.html", "--json")
    found = json.loads(capsys.readouterr().out)
    assert len(found["tokens"]) == len(found["contributions"])
    run("attention", workspace / "tuned", "a river", "-o", tmp_path / "maps.html", "--json")
    maps = json.loads(capsys.readouterr().out)
    assert len(maps["weights"][0][0]) == len(maps["tokens"])


def test_the_commands_say_what_was_not_read(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb, model in (("attention", "run"), ("explain", "tuned")):
        page = tmp_path / f"{verb}.html"
        run(verb, workspace / model, "river " * 99, "-o", page)
        expected = r"\d+ tokens at the end were left out: the text is longer than the model reads\."
        assert re.search(expected, capsys.readouterr().out)
        assert re.search(expected, page.read_text(encoding="utf-8"))
