"""Small tables of labelled texts."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_types import MultiLabelTask
from bertkit.user_tables.guess import guess

WORDS = ["the", "film", "was", "long", "and", "loud", "but", "every", "scene", "had", "something", "bright", "in", "it"]


def sentence(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=9)) + f" {seed}"


def reviews(rows: int = 40, **odd_labels: str) -> list[tuple[str, str, str]]:
    """(id, review, label); ``row_7="postive"`` changes one label."""
    table = [(str(row), sentence(row), ("negative", "positive")[row % 3 > 0]) for row in range(rows)]
    for row, label in odd_labels.items():
        place = int(row.removeprefix("row_"))
        table[place] = (*table[place][:2], label)
    return table


def write_csv(path: Path, rows: Sequence[tuple[str, ...]], header: str = "id,review,label") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def fails(message: str, exit_code: int, path: Path, **options: object) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        guess(path, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == exit_code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path()


CELLS = ["dull;long", "long", "", "bright", "dull; bright ;long", "[]", '["long", "bright"]']


def write(path: Path, cells: list[str], repeats: int = 7) -> Path:
    rows = [{"text": f"film number {row}", "tags": cells[row % len(cells)]} for row in range(repeats * len(cells))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def task(tmp_path: Path) -> MultiLabelTask:
    table = write(tmp_path / "films.jsonl", CELLS)
    found = guess(table, dev=table, label="tags", kind="labels").task
    assert isinstance(found, MultiLabelTask)
    return found
