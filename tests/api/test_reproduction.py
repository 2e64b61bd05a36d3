"""reproduce from Python: what it refuses before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError
from bertkit.reproduction.reproduce import Reproduction


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


def test_the_paths_of_a_reproduction_do_not_depend_on_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = {}
    (tmp_path / "corpus.txt").write_text("A sentence.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "bertkit.api.reproduction.run_reproduction",
        lambda table, **named: given.update(named) or Reproduction(page=Path(), tables=[]),
    )
    bertkit.reproduce("table5", data=".", output="out", corpus=["corpus.txt"], vectors="corpus.txt", progress="quiet")
    corpus = tmp_path / "corpus.txt"
    assert [given[name] for name in ("data", "output", "corpus", "vectors")] == [
        tmp_path,
        tmp_path / "out",
        [corpus],
        corpus,
    ]


def test_files_of_the_corpus_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"no file at .*corpus\.txt"):
        bertkit.reproduce("table5", data=tmp_path, output=tmp_path, corpus=[tmp_path / "corpus.txt"], progress="quiet")
