from __future__ import annotations

from pathlib import Path

import pytest
from tests.workspace import run


def test_the_commands_say_what_they_found(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    run("attention", workspace / "run", "-a river", "-o", tmp_path / "a.html")
    assert "1 layers of 2 heads" in capsys.readouterr().out
    run("explain", workspace / "tuned", "the river", "-o", tmp_path / "b.html")
    assert "most by" in capsys.readouterr().out
