"""reproduce from Python: what it refuses before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError


def test_data_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BERTKIT_DATA", raising=False)
    with pytest.raises(BertkitError, match="give --data DIR, or set BERTKIT_DATA"):
        bertkit.reproduce("table5", output=tmp_path, progress="quiet")


def test_the_environment_names_the_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BERTKIT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(BertkitError, match=r"no folder at .*nowhere"):
        bertkit.reproduce("table5", output=tmp_path, progress="quiet")


def test_an_output_is_needed_unless_it_is_a_plan(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="reproduce needs -o OUT, or --plan"):
        bertkit.reproduce("table5", data=tmp_path, progress="quiet")


def test_files_of_the_corpus_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"no file at .*corpus\.txt"):
        bertkit.reproduce("table5", data=tmp_path, output=tmp_path, corpus=[tmp_path / "corpus.txt"], progress="quiet")
