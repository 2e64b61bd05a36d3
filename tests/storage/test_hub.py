"""Names of models on the hub, and the copies in the cache of huggingface_hub: a folder as the library writes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import huggingface_hub.constants
import pytest
from tests.workspace import run

import bertkit
from bertkit.errors import BertkitError
from bertkit.storage.hub import find_downloaded, is_hub_id


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("org/name", True),
        ("google-bert/bert-base-uncased", True),
        ("bert-base-uncased", False),
        ("a/b/c", False),
        ("../model", False),
        ("./model", False),
        ("here/absent", False),
        ("/org/name", False),
        ("org/", False),
        ("org/na me", False),
    ],
)
def test_a_name_on_the_hub_is_two_words_that_are_no_path_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, expected: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert is_hub_id(source) is expected


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the cache has for org/name, still empty; the current folder is an empty one."""
    cache = tmp_path / "cache"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    folder = cache / "models--org--name"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("0123abcd")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    snapshot = folder / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    return snapshot


def test_a_downloaded_model_is_found_by_its_name(snapshot: Path) -> None:
    assert find_downloaded("org/name") == snapshot
    assert find_downloaded("org/other") is None
    assert find_downloaded("name") is None
    assert find_downloaded("org/na--me") is None  # no name that the library takes


def test_a_downloaded_model_is_a_model_for_every_verb(snapshot: Path, workspace: Path) -> None:
    shutil.copytree(workspace / "tuned" / "model", snapshot, dirs_exist_ok=True)
    Path("new.csv").write_text("text\na river\n")
    run("predict", "org/name", "new.csv", "-o", "out.csv", "--quiet")
    run("predict", workspace / "tuned", "new.csv", "-o", "expected.csv", "--quiet")
    assert Path("out.csv").read_bytes() == Path("expected.csv").read_bytes()
    run("tokenizer", "show", "org/name", "a river")
    run("embed", "org/name", "new.csv", "-o", "vectors.npy", "--quiet")
    run("search", "vectors.npy", "a river", "--model", "org/name")
    Path("table.csv").write_text("text,label\n" + "".join(f"river {n},wet\nstone {n},dry\n" for n in range(8)))
    run("finetune", "table.csv", "--model", "org/name", "-o", "run", "--epochs", "1", "--no-baseline", "--quiet")
    run("finetune", "table.csv", "--model", "org/name", "-o", "run", "--epochs", "1", "--no-baseline", "--quiet")
    assert bertkit.load("org/name").classify("a river") == bertkit.load(workspace / "tuned").classify("a river")


def test_a_name_without_its_owner_is_answered_with_the_whole_one(snapshot: Path) -> None:
    with pytest.raises(BertkitError, match=r"On the hub it is google-bert/bert-base-cased: bertkit import google-bert"):
        bertkit.load("bert-base-cased")


def test_a_folder_comes_before_a_downloaded_model(snapshot: Path, workspace: Path) -> None:
    shutil.copytree(workspace / "run" / "model", "org/name")
    assert bertkit.load("org/name").folder == Path("org/name").absolute()


def test_a_model_of_which_a_part_was_downloaded_is_one_line(snapshot: Path, workspace: Path) -> None:
    shutil.copytree(workspace / "run" / "model", snapshot, dirs_exist_ok=True)
    (snapshot / "model.safetensors").unlink()
    hint = r"has no weights.*The cache of huggingface_hub has a part of org/name: bertkit import org/name -o name"
    with pytest.raises(BertkitError, match=hint):
        bertkit.load("org/name").fill("river [MASK]")
    (snapshot / "config.json").unlink()
    with pytest.raises(BertkitError, match=r"no model at org/name\. If that is a model on the hub: bertkit import"):
        bertkit.load("org/name")
