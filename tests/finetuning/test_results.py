from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.config.records import to_plain
from bertkit.finetuning.results import (
    RESULTS,
    SeedResult,
    find_best_run,
    is_new_best,
    read_results,
    read_seed,
    read_seeds,
    summarize_seeds,
    write_results,
    write_seed,
)
from bertkit.metrics.classification import ClassScore
from bertkit.runs import RunFolder
from bertkit.scores import UNDEFINED
from bertkit.storage.atomic import write_json


def result_of(seed: int, accuracy: float) -> SeedResult:
    scores = {"accuracy": accuracy, "f1": 1 - accuracy}
    return SeedResult(seed=seed, epochs=[scores], best_epoch=1, scores=scores, seconds=7.0, examples_per_second=13.0)


def test_mean_and_standard_deviation_are_over_seeds(tmp_path: Path) -> None:
    result = summarize_seeds(
        RunFolder(tmp_path), "accuracy", [result_of(3, 0.5), result_of(4, 0.75), result_of(5, 0.25)]
    )
    assert (result.mean, result.sd) == (0.5, 0.25)
    assert (result.metric, result.folder, result.best.seed) == ("accuracy", tmp_path, 4)


def test_one_seed_has_no_standard_deviation(tmp_path: Path) -> None:
    assert summarize_seeds(RunFolder(tmp_path), "accuracy", [result_of(3, 0.5)]).sd is None


def test_of_equal_seeds_the_first_is_the_best(tmp_path: Path) -> None:
    seeds = [result_of(4, 0.5), result_of(3, 0.75), result_of(5, 0.75)]
    assert summarize_seeds(RunFolder(tmp_path), "accuracy", seeds).best.seed == 3
    assert is_new_best(seeds[1], seeds[:1], "accuracy")
    assert not is_new_best(seeds[2], seeds[:2], "accuracy")


def test_an_undefined_score_is_not_the_best_and_is_read_as_it_was_written(tmp_path: Path) -> None:
    seeds = [result_of(3, UNDEFINED), result_of(4, 0.25), result_of(5, UNDEFINED)]
    result = summarize_seeds(RunFolder(tmp_path), "accuracy", seeds)
    assert result.best.seed == 4 and math.isnan(result.mean) and result.sd is None
    assert is_new_best(seeds[1], seeds, "accuracy") and not is_new_best(seeds[2], seeds, "accuracy")
    with RunFolder(tmp_path) as folder:
        write_results(folder, result)
    assert "NaN" not in (tmp_path / RESULTS).read_text(encoding="utf-8")
    read = read_results(tmp_path)
    assert math.isnan(read.mean) and math.isnan(read.seeds[0].epochs[0]["accuracy"]) and read.best == seeds[1]


def test_a_seed_is_not_compared_with_its_own_earlier_result() -> None:
    assert is_new_best(result_of(3, 0.5), [result_of(3, 0.5)], "accuracy")


def test_seeds_are_read_as_they_were_written_in_numerical_order(tmp_path: Path) -> None:
    part = ClassScore(name="LOC", precision=0.5, recall=0.25, f1=1 / 3, support=7)
    results = [result_of(10, 0.5), SeedResult(**{**vars(result_of(2, 0.75)), "parts": [part]})]
    with RunFolder(tmp_path) as folder:
        assert read_seed(folder, 2) is None
        for result in results:
            write_seed(folder, result)
        assert read_seed(folder, 2) == results[1]
        assert read_seeds(folder) == [results[1], results[0]]


def test_the_results_of_a_run_are_read_from_its_folder(tmp_path: Path) -> None:
    result = summarize_seeds(RunFolder(tmp_path), "f1", [result_of(3, 0.5), result_of(4, 0.75)])
    write_json(tmp_path / RESULTS, to_plain(result))
    assert read_results(tmp_path) == result
    assert result.sd == pytest.approx(0.25 / 2**0.5)


def test_the_best_run_has_the_least_error_or_the_highest_score(tmp_path: Path) -> None:
    runs = {
        Path(name): summarize_seeds(RunFolder(tmp_path), "accuracy", [result_of(3, score)])
        for name, score in (("low", 0.25), ("high", 0.75), ("undefined", UNDEFINED))
    }
    assert find_best_run(runs) == Path("high")
    errors = {name: replace(each, metric="mean_absolute_error") for name, each in runs.items()}
    assert find_best_run(errors) == Path("low")
