from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.cli import app
from bertkit.errors import BAD_DATA, WRONG_USAGE


def test_errors_before_the_start_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["serve"], "serve needs MODELS, run folders or model folders"),
        (["serve", str(tmp_path / "none")], "no model at"),
        (["serve", "m", "--port", "70000"], "port is 70000; it must be from 0 to 65,535"),
        (["serve", "m", "--api-key-file", str(tmp_path / "keys")], "no file at"),
    ):
        assert app.run(words) in (WRONG_USAGE, BAD_DATA)
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
