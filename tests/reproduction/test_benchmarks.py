"""Tasks of the paper with their files and settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.reproduction.benchmarks import find_benchmark
from bertkit.reproduction.scales import PAPER, SMOKE
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.glue import mnli
from bertkit.tasks.squad import v1
from bertkit.tasks.swag import swag


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    touch(tmp_path / mnli.files.home, "train.tsv", "dev_matched.tsv", "dev_mismatched.tsv")
    touch(tmp_path / conll2003.files.home, "eng.train", "eng.testa", "eng.testb")
    touch(tmp_path / "squad", "squadshifts-new_wiki-v1.1.json")
    touch(tmp_path / "swag", "codah-train.csv", "codah-val.csv")
    return tmp_path


def test_a_task_with_its_own_files_needs_no_note(files: Path) -> None:
    benchmark = find_benchmark(mnli, None, files, SMOKE)
    assert (benchmark.name, benchmark.note) == ("glue:mnli", "")
    assert benchmark.settings == {"task.max_length": SMOKE.max_length}


def test_replaced_files_are_noted(files: Path) -> None:
    benchmark = find_benchmark(swag, None, files, SMOKE)
    assert benchmark.note == "swag: codah-train.csv, codah-val.csv instead of the benchmark's own files."
    assert not benchmark.task.files.missing("swag", "train")


def test_without_a_dev_file_a_tenth_is_held_out(files: Path) -> None:
    benchmark = find_benchmark(v1, None, files, SMOKE)
    assert benchmark.task.heldout == 0.1
    assert benchmark.note.endswith("a tenth of it held out as dev.")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"train\.tsv does not exist\. Name the folder that holds glue/MNLI: --data"):
        find_benchmark(mnli, None, tmp_path, SMOKE)
    with pytest.raises(BertkitError, match=r"does not exist, nor codah-train\.csv, codah-val\.csv instead"):
        find_benchmark(swag, None, tmp_path, SMOKE)


def test_features_have_the_learning_rate_of_baselines(files: Path) -> None:
    benchmark = find_benchmark(conll2003, "sum-all", files, PAPER)
    assert benchmark.name == "conll2003:sum-all"
    assert benchmark.settings["task.features"] == "sum-all"
    assert benchmark.settings["optimizer.lr"] == PAPER.baseline_lr


def test_settings_of_the_paper_are_used_at_its_scale_only(files: Path) -> None:
    assert find_benchmark(swag, None, files, PAPER).settings["optimizer.lr"] == 2e-5
    assert "optimizer.lr" not in find_benchmark(swag, None, files, SMOKE).settings
    assert find_benchmark(conll2003, None, files, PAPER).settings["task.context"] is True
    assert find_benchmark(conll2003, None, files, SMOKE).settings["task.context"] is False


def test_long_passages_are_read_in_windows(files: Path) -> None:
    settings = find_benchmark(v1, None, files, replace(SMOKE, span_length=96)).settings
    assert settings == {"task.max_length": 96, "task.stride": 32}
