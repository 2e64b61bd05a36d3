from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError


def test_pages_are_written_once(workspace: Path, tmp_path: Path) -> None:
    maps = bertkit.attention(workspace / "run", "the river", output=tmp_path / "a.html")
    assert maps.weights.shape[:2] == (1, 2)
    found = bertkit.explain(workspace / "tuned", "the river", output=tmp_path / "b.html")
    assert found.prediction in ("bad", "good")
    for name in ("a.html", "b.html"):
        assert "</html>" in (tmp_path / name).read_text(encoding="utf-8")
        with pytest.raises(BertkitError, match="exists"):
            bertkit.explain(workspace / "tuned", "the river", output=tmp_path / name)


def test_a_page_has_the_name_of_the_run(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However its folder is named in the command."""
    bertkit.attention(workspace / "run" / "model", "the river", output=tmp_path / "a.html")
    assert "<h1>Attention of run</h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")
    monkeypatch.chdir(workspace / "tuned")
    found = bertkit.explain(".", "the river", output=tmp_path / "b.html")
    assert f"<h1>Why tuned predicts {found.prediction}</h1>" in (tmp_path / "b.html").read_text(encoding="utf-8")


def test_a_page_is_not_written_to_standard_output(workspace: Path) -> None:
    with pytest.raises(BertkitError, match=r"a page is a file: name one, such as -o page\.html"):
        bertkit.attention(workspace / "run", "the river", output="-")


def test_the_folder_of_a_page_is_made_before_the_work(workspace: Path, tmp_path: Path) -> None:
    bertkit.attention(workspace / "run", "the river", output=tmp_path / "new" / "a.html")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.html"]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BertkitError, match="file"):
        bertkit.explain(workspace / "tuned", "the river", output=tmp_path / "file" / "b.html")
