"""How often a fine-tuning reads the files of a model folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import bertkit
from bertkit.checkpoint import model_folder
from bertkit.storage.atomic import read_json
from bertkit.storage.checksums import read_checksums

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_a_finetuning_reads_each_file_of_a_model_folder_once(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``bertkit.json`` and ``config.json``: of the model that it starts from, and of the one that it has saved."""
    reads: Counter[Path] = Counter()

    def count_checksums(path: Path, *, version: int, advice: str) -> dict[str, object]:
        reads[path] += 1
        return read_checksums(path, version=version, advice=advice)

    def count_json(path: Path) -> object:
        if path.name == "config.json":
            reads[path] += 1
        return read_json(path)

    monkeypatch.setattr(model_folder, "read_checksums", count_checksums)
    monkeypatch.setattr(model_folder, "read_json", count_json)
    output = tmp_path / "run"
    bertkit.finetune(table, model=model, output=output, epochs=1, batch_size=13, seeds=2, progress="quiet")
    folders = (model, output / "model")
    assert reads == {folder / name: 1 for folder in folders for name in ("bertkit.json", "config.json")}
