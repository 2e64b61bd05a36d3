"""The speed verbs from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError


@pytest.mark.usefixtures("fast_bfloat16")
def test_the_speed_of_a_run_is_measured_in_every_precision(workspace: Path) -> None:
    found = bertkit.bench_inference(workspace / "run", workspace / "reviews.csv", limit=3, rounds=1, progress="quiet")
    assert [each.system.split()[1] for each in found.systems] == ["float32", "bfloat16", "int8"]
    assert (found.texts, found.left_out) == (3, {})
    assert all(each.texts_per_second > 0 and each.cosine > 0.9 for each in found.systems)


@pytest.mark.usefixtures("fast_bfloat16")
def test_fine_tuning_is_measured_on_a_table(workspace: Path) -> None:
    found = bertkit.bench_finetune(
        workspace / "reviews.csv",
        model=workspace / "run",
        limit=29,
        batch_size=7,
        rounds=1,
        seconds=0,
        progress="quiet",
    )
    assert [each.system for each in found.systems] == ["bertkit float32", "bertkit bfloat16"]
    assert (found.unit, found.rounds) == ("examples", 1)


def test_preparation_is_measured_on_a_folder(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text((workspace / "a.txt").read_text())
    found = bertkit.bench_prepare([tmp_path], tokenizer=workspace / "tok", rounds=1, progress="quiet")
    assert [each.system for each in found.systems] == ["bertkit"]


def test_a_file_without_texts_is_named(minilm: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    with pytest.raises(BertkitError, match=r"there is no text in .*empty\.txt"):
        bertkit.bench_inference(minilm, empty, progress="quiet")
