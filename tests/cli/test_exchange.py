"""import and export on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workspace import run

from bertkit.cli import app


def test_import_shows_what_it_found(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("import", workspace / "run", "-o", tmp_path / "out", "--quiet")
    assert ": BERT with heads for mlm, nsp, " in capsys.readouterr().out


def test_export_shows_what_it_wrote(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("export", workspace / "tuned", "--to", "huggingface", "-o", tmp_path / "out", "--quiet")
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'out'}: BERT with heads for class, ")
    assert (tmp_path / "out" / "config.json").is_file()


def test_an_unknown_format_is_wrong_usage(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["export", str(workspace / "run"), "--to", "caffe", "-o", "out"]) == 2
    assert "huggingface" in capsys.readouterr().err
