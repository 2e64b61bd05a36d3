from __future__ import annotations

from pathlib import Path

import pytest

from bertkit import load_tokenizer
from bertkit.errors import BertkitError
from bertkit.speed.preparation import compare_preparation, peer_systems, time_own


def _quiet(_: str) -> None:
    pass


def test_speeds_are_megabytes_of_the_text(workspace: Path) -> None:
    files, tokenizer = [workspace / "a.txt"], load_tokenizer(workspace / "tok")
    found = compare_preparation(files, tokenizer, ["tokenizers"], rounds=2, say=_quiet)
    assert [each.system for each in found.systems] == ["bertkit", "tokenizers alone, text in memory"]
    assert (found.unit, found.rounds, found.left_out) == ("MB", 2, {})
    assert all(each.per_second > 0 for each in found.systems)


def test_nothing_is_left_behind(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert time_own([workspace / "a.txt"], load_tokenizer(workspace / "tok")) > 0
    assert list(tmp_path.iterdir()) == []


def test_datasets_reads_plain_text_and_json_lines_only(workspace: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="install datasets")
    tokenizer = load_tokenizer(workspace / "tok")
    with pytest.raises(BertkitError, match=r"page\.html is another"):
        list(peer_systems([tmp_path / "page.html"], tokenizer, "datasets"))


@pytest.mark.slow
def test_datasets_prepares_the_same_files(workspace: Path) -> None:
    pytest.importorskip("datasets", reason="install datasets")
    files = [workspace / "a.txt"]
    found = compare_preparation(files, load_tokenizer(workspace / "tok"), ["datasets"], rounds=1, say=_quiet)
    assert found.left_out == {}
    assert len(found.systems) == 2


def test_a_file_without_text_is_refused(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(BertkitError, match="there is no text"):
        compare_preparation([tmp_path / "empty.txt"], load_tokenizer(workspace / "tok"), [], rounds=1, say=_quiet)
