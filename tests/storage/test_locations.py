"""Paths that must exist: what an error says about those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.storage.locations import (
    explain_missing_model,
    label_folders,
    list_paths,
    refuse_lfs_pointers,
    require_any,
    require_data,
    require_files,
    require_model,
    require_run,
    require_texts,
    suggest_path,
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two runs, a model, a folder without one, and a file."""
    monkeypatch.chdir(tmp_path)
    for file in (
        "runs/a/run.json",
        "runs/reviews/run.json",
        "runs/theirs/config.json",
        "runs/notes/x",
        "reviews.csv",
        "run.toml",
        "runs/data/manifest.json",
    ):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("{}")
    return tmp_path


def test_what_exists_is_accepted(here: Path) -> None:
    require_files([Path("reviews.csv")])
    require_texts([Path("reviews.csv"), Path("runs")])
    require_model(Path("runs/a"))
    require_data(Path("runs"))
    require_any(Path("reviews.csv"))


def test_a_model_that_is_being_replaced_is_found_at_its_backup(here: Path) -> None:
    Path("runs/.bertkit-old-b").mkdir()
    require_model(Path("runs/b"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("runs/none", "no model at runs/none. There are: runs/a, runs/reviews, runs/theirs."),
        ("runs/review", "no model at runs/review. Did you mean runs/reviews?"),
        ("absent/none", "no model at absent/none. If that is a model on the hub: bertkit import absent/none"),
        ("a b/none", "no model at a b/none."),
    ],
)
def test_a_missing_model(here: Path, path: str, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        require_model(Path(path))
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == WRONG_USAGE


def test_other_errors_about_paths(here: Path) -> None:
    for check, path, message in (
        (lambda path: require_files([path]), "review.csv", "no file at review.csv. Did you mean reviews.csv?"),
        (lambda path: require_files([path]), "runs", "runs is a folder; name its files"),
        (require_data, "dota", "no data at dota. Make it with: bertkit prepare"),
        (require_data, "my x", "no data at my x. Make it with: bertkit prepare FILE... --tokenizer TOK -o 'my x'"),
        (require_data, "runs/dota", "no data at runs/dota. Did you mean runs/data?"),
        (require_data, "reviews.csv", "reviews.csv is a file, and no prepared corpus. Files of text are prepared with"),
        (require_data, "run.toml", "run.toml is a file of settings, and no prepared corpus. Give it with --config run"),
        (require_run, "runs/review", "no run at runs/review. Did you mean runs/reviews?"),
        (require_run, "runs/42", "no run at runs/42. There are: runs/a, runs/reviews."),
        (require_any, "review.csv", "no file or folder at review.csv. Did you mean reviews.csv?"),
    ):
        with pytest.raises(BertkitError) as caught:
            check(Path(path))
        assert str(caught.value).startswith(message)
        assert caught.value.exit_code == WRONG_USAGE


def test_a_path_below_an_existing_folder_is_not_taken_for_a_model_on_the_hub(here: Path) -> None:
    for path, is_hinted in (("runs/none", False), ("google-bert/none", True)):
        assert ("on the hub" in str(explain_missing_model(Path(path)))) == is_hinted


def test_nothing_is_suggested_where_nothing_is_similar(here: Path) -> None:
    assert suggest_path(Path("absent/reviews.csv")) == ""
    assert list_paths([]) == ""


def test_a_broken_link_is_not_suggested_for_itself(here: Path) -> None:
    (here / "gone.txt").symlink_to("nowhere.txt")
    with pytest.raises(BertkitError, match=r"no file at .*gone\.txt\.") as caught:
        require_files([here / "gone.txt"])
    assert "gone.txt?" not in str(caught.value)


def test_a_long_list_is_cut() -> None:
    assert list_paths([Path(f"r{number}") for number in range(7)]) == " There are: r0, r1, r2, r3, r4 and 2 more."


def test_a_folder_that_cannot_be_read_is_an_error_in_one_line(tmp_path: Path) -> None:
    assert str(explain_missing_model(tmp_path / ("n" * 300))).startswith("no model at ")


def test_a_folder_that_may_not_be_read_is_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("good", "bad", "lost+found"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").touch()
    entries = Path.iterdir

    def listed(folder: Path) -> Iterator[Path]:
        if folder.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(folder))
        return entries(folder)

    monkeypatch.setattr(Path, "iterdir", listed)
    assert [each.name for each in label_folders(tmp_path)] == ["bad", "good"]


def test_folders_of_models_are_no_labels(tmp_path: Path) -> None:
    for name in ("base", "large"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vocab.txt").touch()
    assert len(label_folders(tmp_path)) == 2
    (tmp_path / "large" / "config.json").touch()
    assert [each.name for each in label_folders(tmp_path)] == ["base"]


def test_a_pointer_of_git_lfs_is_refused(tmp_path: Path) -> None:
    pointer, weights = tmp_path / "model.safetensors", tmp_path / "other.safetensors"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    weights.write_bytes(b"version 1")
    refuse_lfs_pointers([weights, tmp_path / "absent"])
    with pytest.raises(BertkitError, match=r"model\.safetensors is a pointer of Git LFS .*: git lfs pull$"):
        refuse_lfs_pointers([weights, pointer])
