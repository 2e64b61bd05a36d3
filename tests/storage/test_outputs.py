"""What a command may write over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.storage.outputs import (
    check_output,
    locked_output,
    locked_partial,
    open_output_folder,
    partial_path,
    resolve_output,
)


def test_a_new_output_is_accepted(tmp_path: Path) -> None:
    check_output(tmp_path / "out.csv", inputs=[tmp_path / "in.csv"])


def test_an_existing_output_needs_overwrite(tmp_path: Path) -> None:
    (tmp_path / "out.csv").touch()
    with pytest.raises(BertkitError, match=r"out\.csv exists\. .*--overwrite"):
        check_output(tmp_path / "out.csv")
    check_output(tmp_path / "out.csv", overwrite=True)


@pytest.mark.parametrize("name", ["in.csv", "sub/../in.csv", "link.csv", "hard.csv"])
def test_no_spelling_of_the_input_is_an_output(tmp_path: Path, name: str) -> None:
    source = tmp_path / "in.csv"
    source.touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.csv").symlink_to(source)
    (tmp_path / "hard.csv").hardlink_to(source)
    with pytest.raises(BertkitError, match="is the input"):
        check_output(tmp_path / name, inputs=[source], overwrite=True)


def test_a_folder_is_no_output_file(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="is a folder"):
        check_output(tmp_path, overwrite=True)


def test_a_folder_is_made_unless_it_has_one_of_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    open_output_folder(folder, ["x"])
    (folder / "mine").touch()
    open_output_folder(folder, ["x"])
    (folder / "x").touch()
    with pytest.raises(BertkitError, match="x exists"):
        open_output_folder(folder, ["x"])
    open_output_folder(folder, ["x"], overwrite=True)


def test_a_folder_that_is_replaced_is_not_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for above in (Path(), Path(".."), tmp_path, Path("/")):
        with pytest.raises(BertkitError, match=r"would be replaced as a whole, and you are in it\. Choose a new -o"):
            resolve_output(above)
    assert resolve_output(Path("new")) == tmp_path.resolve() / "inner" / "new"


def test_a_link_that_leads_to_itself_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BertkitError, match=r"cannot write to .*loop: (.*loop|File exists).*Choose another -o folder"):
        open_output_folder(resolve_output(tmp_path / "loop"), ["a.json"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BertkitError, match="cannot write to"):
        open_output_folder(tmp_path, ["x"])


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BertkitError, match="cannot write to"):
        open_output_folder(tmp_path / "file" / "sub", ["x"])


def test_the_partial_file_has_one_writer_and_stays(tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    with locked_partial(output) as partial:
        assert partial == partial_path(output)
        for lock in (locked_partial, locked_output):
            with pytest.raises(BertkitError, match=r"out\.csv is being written by another process"), lock(output):
                pass
    assert partial.exists()


def test_the_lock_of_an_output_is_deleted(tmp_path: Path) -> None:
    with locked_output(tmp_path / "new" / "out"):
        assert partial_path(tmp_path / "new" / "out").exists()
    assert not list((tmp_path / "new").iterdir())
