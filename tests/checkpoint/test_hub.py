"""Downloading a model: the real library without a network, and a stub at its boundary."""

from __future__ import annotations

import json
import shutil
from fnmatch import fnmatch
from pathlib import Path

import httpx2
import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError
from tests.workspace import run

import bertkit
from bertkit.checkpoint.hub import download
from bertkit.cli import app
from bertkit.errors import BertkitError


def test_without_a_network_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library itself is asked; the tests run with HF_HUB_OFFLINE=1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert app.run(["import", "org/absent", "-o", "model", "--quiet"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("error: there is no org/absent here, and it cannot be downloaded: ")
    assert printed.endswith("hf download org/absent --local-dir absent, and name the folder.\n")
    assert printed.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.fixture
def hub(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the model org/name, of which the stub copies those that are asked for into a snapshot."""
    files = tmp_path / "files"
    shutil.copytree(workspace / "run" / "model", files)
    (files / "bertkit.json").unlink()
    for name in ("pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "onnx_model.onnx", "setup.py"):
        (files / name).write_text("must not be downloaded")

    def snapshot_download(name: str, *, allow_patterns: list[str] | None = None, local_files_only: bool = False) -> str:
        if local_files_only or allow_patterns is None:
            raise LocalEntryNotFoundError("not in the cache")
        if name != "org/name":
            raise RepositoryNotFoundError(
                "404", response=httpx2.Response(404, request=httpx2.Request("GET", "https://hub"))
            )
        snapshot = tmp_path / "cache" / "0123abcd"
        snapshot.mkdir(parents=True, exist_ok=True)
        for file in files.iterdir():
            if any(fnmatch(file.name, pattern) for pattern in allow_patterns) and not (snapshot / file.name).exists():
                (snapshot / file.name).symlink_to(file)  # as in the cache of the library
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.chdir(tmp_path)
    return files


def test_a_model_is_downloaded_and_its_origin_is_recorded(hub: Path, workspace: Path, tmp_path: Path) -> None:
    run("import", "org/name", "-o", "model", "--quiet")
    assert json.loads((tmp_path / "model" / "bertkit.json").read_text())["from"] == "org/name@0123abcd"
    assert bertkit.load("model").fill("river [MASK]") == bertkit.load(workspace / "run").fill("river [MASK]")


def test_a_model_that_bertkit_wrote_keeps_its_task(hub: Path, workspace: Path, tmp_path: Path) -> None:
    shutil.copytree(workspace / "tuned" / "model", hub, dirs_exist_ok=True)
    run("import", "org/name", "-o", "model", "--quiet")
    assert bertkit.load("model").task.name == bertkit.load(workspace / "tuned").task.name


def test_only_what_is_read_is_downloaded(hub: Path) -> None:
    names = {file.name for file in download("org/name").iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert not names & {"pytorch_model.bin", "tf_model.h5", "flax_model.msgpack", "onnx_model.onnx", "setup.py"}


def test_a_pickle_is_downloaded_only_where_there_is_nothing_else(hub: Path) -> None:
    (hub / "model.safetensors").unlink()
    assert "pytorch_model.bin" in {file.name for file in download("org/name").iterdir()}


def test_a_model_that_the_hub_does_not_have_is_one_line(hub: Path) -> None:
    with pytest.raises(BertkitError, match="there is no org/other here, and the hub has no such model") as caught:
        download("org/other")
    assert caught.value.exit_code == 2


def test_no_other_verb_downloads(hub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["fill", "org/name", "river [MASK]"]) == 2
    assert "bertkit import org/name -o name" in capsys.readouterr().err
