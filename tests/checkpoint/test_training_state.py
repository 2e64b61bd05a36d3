"""Checkpoints to resume from: written completely, checked, found, deleted."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bertkit.checkpoint import training_state as store
from bertkit.errors import BertkitError


def groups(value: float = 1.0) -> dict[str, dict[str, Tensor]]:
    return {"model": {"weight": torch.full((7, 3), value)}, "random": {"cpu": torch.arange(13, dtype=torch.uint8)}}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_groups_and_state_are_saved_and_loaded(tmp_path: Path) -> None:
    state = {"step": 123, "epoch": 4, "note": "í", "loss": 0.1}
    path = store.save(tmp_path / "checkpoints", 123, groups(), state)
    assert path == tmp_path / "checkpoints" / "step-00000123"
    assert names(path) == ["manifest.json", "model.safetensors", "random.safetensors", "state.json"]
    loaded, found = store.load(path)
    assert found == state
    assert {name: set(tensors) for name, tensors in loaded.items()} == {"model": {"weight"}, "random": {"cpu"}}
    assert torch.equal(loaded["model"]["weight"], groups()["model"]["weight"])
    assert torch.equal(loaded["random"]["cpu"], groups()["random"]["cpu"])


def test_weights_have_the_same_permissions_as_the_state(tmp_path: Path) -> None:
    path = store.save(tmp_path, 1, groups(), {})
    assert len({file.stat().st_mode for file in path.iterdir()}) == 1


HOSTILE = ["../../x", "..\\x", "con", "", "x" * 300, "a\0b", "$(touch x)", "line\nline", "\x1b[31m", "/etc/x", "ＡＢ"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_tensors_are_never_paths(tmp_path: Path, name: str) -> None:
    path = store.save(tmp_path / "deep" / "checkpoints", 1, {"model": {name: torch.ones(2)}}, {"note": name})
    loaded, state = store.load(path)
    assert list(loaded["model"]) == [name]
    assert state == {"note": name}
    assert names(tmp_path) == ["deep"]
    assert names(path) == ["manifest.json", "model.safetensors", "state.json"]


def test_the_name_of_a_group_must_be_a_file_name(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        store.save(tmp_path, 1, {"../x": {}}, {})


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        path = store.save(tmp_path, 7, groups(value), {})
    assert names(tmp_path) == ["step-00000007"]
    assert store.load(path)[0]["model"]["weight"][0, 0] == 2.0


def test_the_newest_checkpoint_has_the_highest_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks may leap, and times of files be equal or reversed (FAULTS row 19)."""
    for step in (100_000_000, 99, 5):
        path = store.save(tmp_path, step, groups(step), {"step": step})
        monkeypatch.setattr(time, "time", lambda: -1.0)
        os.utime(path, (1_000_000 - step % 1000, 1_000_000 - step % 1000))
    assert [path.name for path in store.checkpoints(tmp_path)] == ["step-00000005", "step-00000099", "step-100000000"]
    path, faults = store.latest(tmp_path)  # type: ignore[assignment]
    assert (path.name, faults) == ("step-100000000", [])
    for each in store.checkpoints(tmp_path):
        os.utime(each, (1, 1))
    assert store.latest(tmp_path)[0] == path


def test_a_folder_without_checkpoints_has_no_newest(tmp_path: Path) -> None:
    assert store.latest(tmp_path) == (None, [])
    assert store.latest(tmp_path / "absent") == (None, [])


def test_paths_with_other_names_are_not_checkpoints(tmp_path: Path) -> None:
    for name in (".bertkit-tmp-12-step-00000009", "step-9", "step-00000009.bak", "step-٠٠٠٠٠٠٠٩", "notes"):
        (tmp_path / name).mkdir()
    assert store.checkpoints(tmp_path) == []
    store.save(tmp_path, 3, groups(), {})
    assert names(tmp_path) == sorted(["step-9", "step-00000009.bak", "step-٠٠٠٠٠٠٠٩", "notes", "step-00000003"])


def test_damaged_newer_checkpoints_are_reported(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        store.save(tmp_path, step, groups(), {})
    (tmp_path / "step-00000003" / "state.json").unlink()
    (tmp_path / "step-00000002" / "random.safetensors").write_bytes(b"")
    path, faults = store.latest(tmp_path)
    assert path == tmp_path / "step-00000001"
    assert len(faults) == 2
    assert "step-00000003" in faults[0]
    assert "state.json is missing" in faults[0]
    assert "step-00000002" in faults[1]
    assert "random.safetensors is damaged: it has 0 bytes" in faults[1]


def test_if_all_checkpoints_are_damaged_it_is_an_error(tmp_path: Path) -> None:
    path = store.save(tmp_path, 1, groups(), {})
    (path / "manifest.json").unlink()
    with pytest.raises(
        BertkitError, match=r"no checkpoint in .* is intact.*manifest\.json is missing.*Delete"
    ) as caught:
        store.latest(tmp_path)
    assert caught.value.exit_code == 3


def test_a_checkpoint_under_the_name_of_another_step_is_refused(tmp_path: Path) -> None:
    store.save(tmp_path, 1, groups(), {}).rename(tmp_path / "step-00000008")
    with pytest.raises(BertkitError, match="holds step 1, not that of its name"):
        store.load(tmp_path / "step-00000008")


def test_a_copy_under_another_name_is_loaded(tmp_path: Path) -> None:
    copy = store.save(tmp_path, 1, groups(), {}).rename(tmp_path / "keep")
    assert torch.equal(store.load(copy)[0]["model"]["weight"], groups()["model"]["weight"])


@pytest.mark.parametrize("make", ["nothing", "file", "link"])
def test_a_path_that_is_not_a_checkpoint_is_an_error(tmp_path: Path, make: str) -> None:
    path = tmp_path / "step-00000001"
    if make == "file":
        path.write_text("")
    if make == "link":
        path.symlink_to("nowhere")
    with pytest.raises(BertkitError, match=r"step-00000001 is not a checkpoint"):
        store.load(path)


def test_a_manifest_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_FORMAT", 1)
    path = store.save(tmp_path, 1, groups(), {})
    monkeypatch.undo()
    with pytest.raises(BertkitError, match="has format 1; this version of bertkit reads format 2"):
        store.load(path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"files": 3}', '{"files": {"../step-00000002/state.json": {}}}'])
def test_an_invalid_manifest_is_refused(tmp_path: Path, content: str) -> None:
    path = store.save(tmp_path, 1, groups(), {})
    (path / "manifest.json").write_text(content)
    with pytest.raises(BertkitError, match=r"manifest\.json is damaged"):
        store.load(path)


def test_pruning_keeps_the_newest_checkpoints(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        store.save(tmp_path, step, groups(), {})
    store.prune(tmp_path, 2)
    assert names(tmp_path) == ["step-00000003", "step-00000004"]
    store.prune(tmp_path, 5)
    assert names(tmp_path) == ["step-00000003", "step-00000004"]


def test_pruning_never_deletes_the_last_intact_checkpoint(tmp_path: Path) -> None:
    for step in (1, 2, 9):
        store.save(tmp_path, step, groups(), {})
    weights = tmp_path / "step-00000009" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    store.prune(tmp_path, 1)
    assert names(tmp_path) == ["step-00000002", "step-00000009"]
    assert store.latest(tmp_path)[0] == tmp_path / "step-00000002"


def test_pruning_does_not_read_what_was_just_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = [store.save(tmp_path, step, groups(), {}) for step in (1, 2, 3)]
    read: list[Path] = []
    monkeypatch.setattr(store, "verify", read.append)
    store.prune(tmp_path, 2, intact=[written[2]])
    assert (read, names(tmp_path)) == ([written[1]], ["step-00000002", "step-00000003"])


def test_an_interrupted_replacement_keeps_the_old_checkpoint(tmp_path: Path) -> None:
    """Between the two renames the old checkpoint stands aside, and is the truth."""
    store.save(tmp_path, 7, groups(1.0), {}).rename(tmp_path / ".bertkit-old-step-00000007")
    path, faults = store.latest(tmp_path)
    assert path is not None
    assert faults == []
    assert store.load(path)[0]["model"]["weight"][0, 0] == 1.0
    store.save(tmp_path, 8, groups(2.0), {})
    assert names(tmp_path) == ["step-00000007", "step-00000008"]


def test_the_error_of_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(BertkitError, match=r"cannot write .*step-00000001: .*exists"):
        store.save(tmp_path / "checkpoints", 1, groups(), {})


def test_the_manifest_lists_format_step_and_files(tmp_path: Path) -> None:
    manifest = json.loads((store.save(tmp_path, 5, groups(), {}) / "manifest.json").read_text())
    assert (manifest["format"], manifest["step"]) == (2, 5)
    assert set(manifest["files"]) == {"model.safetensors", "random.safetensors", "state.json"}
    assert set(manifest["files"]["state.json"]) == {"bytes", "sha256"}
