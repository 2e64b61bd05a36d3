"""The blocks of docs/parts.md run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "parts.md"


def test_the_blocks_of_the_page_run(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    code = "\n".join(blocks).replace("runs/mini", "run").replace("max_length=128", "max_length=37")
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert tuple(names["logits"].shape) == (2, 2)  # type: ignore[attr-defined]
