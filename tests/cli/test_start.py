"""quickstart and doctor."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workspace import run, run_json

import bertkit


def test_doctor_shows_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "doctor", "--json")["cores"] >= 1
    run("doctor")
    assert capsys.readouterr().out


def test_quickstart_shows_the_lines_of_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, object]] = []

    class Result:
        def lines(self) -> list[str]:
            return ["accuracy 0.9"]

    def quickstart(**options: object) -> Result:
        calls.append(options)
        return Result()

    monkeypatch.setattr(bertkit, "quickstart", quickstart)
    run("quickstart", "-o", tmp_path, "--minutes", 3, "--quiet")
    assert capsys.readouterr().out == "accuracy 0.9\n"
    assert calls == [{"output": tmp_path, "minutes": 3.0, "device": "auto", "progress": "quiet"}]
