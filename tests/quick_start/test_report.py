"""The report of the quickstart."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.finetuning.baselines import Baseline
from bertkit.finetuning.results import FinetuneResult, SeedResult
from bertkit.pretraining.run import PretrainResult
from bertkit.quick_start.report import QuickstartResult, draw_curve
from bertkit.task_types.pretraining import DataReport


def score(*accuracies: float) -> FinetuneResult:
    seeds = [
        SeedResult(seed=seed, epochs=[], best_epoch=1, scores={"accuracy": each}, seconds=1.0, examples_per_second=1.0)
        for seed, each in enumerate(accuracies)
    ]
    mean = sum(accuracies) / len(accuracies)
    spread = max(accuracies) - min(accuracies)
    return FinetuneResult(
        folder=Path("q/f"), metric="accuracy", seeds=seeds, mean=mean, sd=spread / 2, best=seeds[0], baselines=BASELINES
    )


BASELINES = [
    Baseline(name="most frequent answer", scores={"accuracy": 0.125}, seconds=0.0),
    Baseline(name="bag of words", scores={"accuracy": 0.405}, seconds=1.0),
]


def result(scratch: FinetuneResult, pretrained: FinetuneResult) -> QuickstartResult:
    report = DataReport(
        examples_per_epoch=99,
        sampled=99,
        random_next_share=0.5,
        row_fill=0.9,
        masked_share=0.3,
        duplicate_rows=0.0,
        unknown_tokens=0.0,
    )
    pretraining = PretrainResult(folder=Path("my quick/pretrained"), steps=1234, seconds=77.0, data=report, heldout={})
    return QuickstartResult(
        output=Path("my quick"),
        size="tiny",
        text="1.0 MB",
        task="Which?",
        losses=[8.25, 6.0, 4.5],
        pretraining=pretraining,
        blanks=[],
        scores={"from scratch": scratch, "pre-trained": pretrained},
        seconds=99.0,
    )


def test_a_gain_above_the_spread_of_seeds_is_reported() -> None:
    lines = result(score(0.4, 0.42), score(0.59, 0.61)).lines()
    assert "  from scratch            41.0%  ± 1.0 over 2 seeds" in lines
    assert "  pre-trained             60.0%  ± 1.0 over 2 seeds" in lines
    assert "  Pre-training gained 19.0 points over the best alternative (from scratch)." in lines


@pytest.mark.parametrize(("better", "measured"), [((0.4, 0.45), r"\+0.5 points"), ((0.3, 0.31), r"-11.5 points")])
def test_a_gain_within_the_spread_of_seeds_is_not_called_one(better: tuple[float, ...], measured: str) -> None:
    (line,) = [each for each in result(score(0.41, 0.43), score(*better)).lines() if "did not pay" in each]
    assert measured.replace("\\", "") in line
    assert "--minutes" in line


def test_the_gain_is_over_the_best_alternative() -> None:
    lines = result(score(0.3), score(0.6)).lines()
    assert "  bag of words            40.5%" in lines
    assert "  Pre-training gained 19.5 points over the best alternative (bag of words)." in lines


def test_the_suggested_fine_tuning_has_the_settings_of_the_quickstart() -> None:
    lines = result(score(0.4), score(0.5)).lines()
    command = "  bertkit finetune YOUR.csv --model 'my quick/pretrained' -o runs/yours --lr 0.001 --epochs 6"
    assert command in lines


def test_commands_quote_paths() -> None:
    lines = result(score(0.4), score(0.5)).lines()
    assert "  bertkit pretrain 'my quick/data' --profile fast --minutes 60 -o runs/mini" in lines


def test_curve_is_scaled_to_eight_levels_and_forty_bars() -> None:
    assert draw_curve([8.0, 4.0, 1.0]) == "█▄▁"
    assert draw_curve([5.0]) == "▁"
    assert draw_curve([float(80 - place) for place in range(80)])[::13] == "█▅▃▁"
    assert len(draw_curve([1.0, 2.0] * 99)) == 40
