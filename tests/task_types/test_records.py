"""Tasks from the records in model folders."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_types import FileTask, TaggingTask, from_record
from bertkit.task_types.records import TASK_TYPES

MODULE = '''
from dataclasses import dataclass

from bertkit.task_types import RegressionTask


@dataclass(frozen=True, kw_only=True)
class RankingTask(RegressionTask):
    """Numbers that are ranks."""

    places: int = 3


ranking = RankingTask(name="my_lab.ranking:ranking", metric="spearman", places=7)
not_a_task = 7
'''


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "__init__.py").touch()
    (tmp_path / "my_lab" / "ranking.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BERTKIT_TRUST", "my_lab")
    monkeypatch.delitem(sys.modules, "my_lab", raising=False)
    monkeypatch.delitem(sys.modules, "my_lab.ranking", raising=False)


def test_a_record_names_its_type_and_comes_back() -> None:
    task = TaggingTask(name="names", labels=("O", "B-X", "I-X"), crf=True)
    record = json.loads(json.dumps(task.record()))
    assert record["type"] == "tagging"
    assert from_record(record) == task


def test_opened_tables_are_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label\na,0.5\nb,0.7\n")
    task = TASK_TYPES["regression"](name="n", metric="pearson").with_files(train=[tmp_path / "t.csv"])
    before = task.record()
    assert len(task.examples("train")) == 2
    assert task.record() == before
    assert from_record(json.loads(json.dumps(before))) == task


@pytest.mark.usefixtures("user_module")
def test_a_task_of_the_users_own_type_comes_back() -> None:
    ranking = sys.modules["my_lab.ranking"].ranking if "my_lab.ranking" in sys.modules else _import_ranking()
    record = json.loads(json.dumps(ranking.record()))
    assert record["type"] == "my_lab.ranking:RankingTask"
    loaded = from_record(record)
    assert isinstance(loaded, FileTask)
    assert loaded == ranking


def _import_ranking() -> FileTask:
    from my_lab.ranking import ranking  # type: ignore[import-not-found]

    assert isinstance(ranking, FileTask)
    return ranking


@pytest.mark.usefixtures("user_module")
def test_a_module_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ranks.py").write_text(MODULE)
    monkeypatch.setenv("BERTKIT_TRUST", "ranks")
    monkeypatch.delitem(sys.modules, "ranks", raising=False)
    loaded = from_record({"type": "ranks:RankingTask", "name": "x", "metric": "spearman", "places": 5})
    assert loaded.record()["type"] == "ranks:RankingTask"
    assert from_record(json.loads(json.dumps(loaded.record()))) == loaded
    sys.modules.pop("ranks")
    monkeypatch.setenv("BERTKIT_TRUST", "")
    with pytest.raises(BertkitError, match="a file names the module ranks, which is code outside bertkit"):
        from_record(loaded.record())


@pytest.mark.parametrize("place", ["function", "script"])
def test_a_class_that_cannot_be_imported_is_an_error_before_the_training(place: str) -> None:
    class LocalTask(TaggingTask):
        """As in a notebook or a script, or as here in a function."""

    if place == "script":
        LocalTask.__module__, LocalTask.__qualname__ = "__main__", "LocalTask"
    with pytest.raises(BertkitError, match="LocalTask cannot be imported from where it is defined"):
        LocalTask(name="local", labels=("O", "B-X")).record()


@pytest.mark.usefixtures("user_module")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (None, 'no type of task is called "None". There are: text_classification, '),
        ("taging", 'no type of task is called "taging"'),
        ("my_lab.ranking:not_a_task", "my_lab.ranking has no type"),
        ("my_lab.ranking:dataclass", None),
        ("builtins.x:int", None),
    ],
)
def test_an_unknown_type_is_an_error(kind: str | None, message: str | None) -> None:
    with pytest.raises((BertkitError, ImportError), match=message):
        from_record({"type": kind, "name": "x"})
