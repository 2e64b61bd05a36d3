"""bench prepare, pretrain, finetune and inference."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.workspace import run, run_json

from bertkit.cli import app


def test_speeds_and_ratios_are_shown(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("bench", "prepare", workspace / "a.txt", "--tokenizer", workspace / "tok", "--against", "tokenizers")
    printed = capsys.readouterr()
    assert printed.out.startswith("preparing 0.0 MB of text in 1 file on")
    assert "bertkit is faster" in printed.out
    assert "1.00 x" in printed.out
    assert not re.search(r"\d\.\d{3}", printed.out), "a speed has three digits that mean something"
    assert "round 3 of 3" in printed.err


@pytest.mark.usefixtures("fast_bfloat16")
def test_a_comparison_without_the_peer_has_both_precisions_and_says_why_in_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    small = ("--size", "1/12/2", "--seq-length", 13, "--batch-size", 3, "--rounds", 1, "--seconds", 0)
    found = run_json(capsys, "bench", "pretrain", *small, "--against", "hf", "--json", "--quiet")
    assert [each["system"] for each in found["systems"]] == ["bertkit float32", "bertkit bfloat16"]
    assert (found["unit"], found["rounds"]) == ("tokens", 1)
    assert found["left_out"] == {"hf": "--against hf needs transformers: pip install 'bertkit[bench]'."}
    assert "one large product in bfloat16" in found["notes"][0]


def test_an_unknown_library_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["bench", "pretrain", "--against", "keras"]) == 2
    assert "hf" in capsys.readouterr().err
