"""Results on stdout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from bertkit.cli.output import show_json, show_lines, show_parts, show_table
from bertkit.metrics.classification import ClassScore


@dataclass(frozen=True)
class Mill:
    name: str
    path: Path
    heights: tuple[float, ...]


def test_records_are_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_json([Mill("Mühle", Path("a/b"), (1.5, 2.0))])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"name": "Mühle", "path": "a/b", "heights": [1.5, 2.0]}]
    assert "Mühle" in printed


def test_each_line_is_ended(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines(["a", "b"])
    assert capsys.readouterr().out == "a\nb\n"


def test_a_table_is_plain_aligned_text_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name", "score"), [("mill", 0.5), ("river", 12)])
    assert capsys.readouterr().out == "name    score\nmill   0.5000\nriver      12\n"


def test_scores_per_class_are_shown_only_if_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    show_parts([])
    assert capsys.readouterr().out == ""
    show_parts([ClassScore(name="PER", precision=0.5, recall=1.0, f1=2 / 3, support=7)])
    header, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["type", "precision", "recall", "f1", "count"]
    assert row == ["PER", "0.5000", "1.0000", "0.6667", "7"]
