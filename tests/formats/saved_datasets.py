"""Folders as the datasets library saves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

CLASSES = {"names": ["neg", "pos", "odd"], "_type": "ClassLabel"}


TEXT = {"dtype": "string", "_type": "Value"}


def save(folder: Path, columns: dict[str, Sequence[Any]], features: dict[str, Any], parts: int = 1) -> Path:
    """What ``Dataset.save_to_disk`` writes: Arrow streams, ``state.json`` and ``dataset_info.json``."""
    folder.mkdir(parents=True)
    table = pa.table(columns)
    size = -(-len(table) // parts)
    names = [f"data-{part:05}-of-{parts:05}.arrow" for part in range(parts)]
    for part, name in enumerate(names):
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(part * size, size), max_chunksize=3)
    state = {"_data_files": [{"filename": name} for name in names], "_split": folder.name, "_format_type": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features, "builder_name": "x"}))
    return folder


def reviews(rows: int, start: int = 0) -> dict[str, Sequence[Any]]:
    numbers = range(start, start + rows)
    return {"text": [f"film number {row}" for row in numbers], "label": [row % 3 for row in numbers]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """``DatasetDict.save_to_disk`` with three splits; test has no labels (-1)."""
    folder = tmp_path / "imdb"
    features = {"text": TEXT, "label": CLASSES}
    save(folder / "train", reviews(37), features, parts=2)
    save(folder / "validation", reviews(13, start=100), features)
    save(folder / "test", {"text": ["one", "two"], "label": [-1, -1]}, features)
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    return folder
