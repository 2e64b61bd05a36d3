"""The report of the quickstart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.finetuning.baselines import Baseline
from bertkit.finetuning.results import FinetuneResult, SeedResult
from bertkit.pretraining.data_report import DataReport
from bertkit.pretraining.run import PretrainResult
from bertkit.quick_start.report import QuickstartResult, Score, draw_curve

BASELINES = {"most frequent answer": 0.125, "bag of words": 0.405}


def score(*accuracies: float) -> Score:
    return Score(accuracies=accuracies, folder=Path("q/f"), baselines=BASELINES, seconds=1.0)


def finetuned(folder: str, *accuracies: float) -> FinetuneResult:
    """A fine-tuning of one seed, with the accuracy after each of its epochs."""
    seed = SeedResult(
        seed=0,
        epochs=[{"accuracy": each} for each in accuracies],
        best_epoch=1,
        scores={"accuracy": max(accuracies)},
        seconds=1.0,
        examples_per_second=1.0,
    )
    baseline = Baseline(name="bag of words", scores={"accuracy": 0.4}, seconds=0.0)
    return FinetuneResult(
        folder=Path(folder), metric="accuracy", seeds=[seed], mean=1.0, sd=None, best=seed, baselines=[baseline]
    )


def test_a_score_is_that_of_the_last_epoch() -> None:
    found = Score.of([finetuned("a", 0.9, 0.5), finetuned("b", 0.6, 0.7)], seconds=3.0)
    assert found.accuracies == (0.5, 0.7)
    assert found.folder == Path("b")
    assert found.baselines == {"bag of words": 0.4}
    assert found.mean == pytest.approx(0.6)
    assert found.sd == pytest.approx(0.02**0.5)
    assert score(0.3).sd == 0.0


def result(scratch: Score, pretrained: Score) -> QuickstartResult:
    report = DataReport(
        examples_per_epoch=99,
        sampled=99,
        random_next_share=0.5,
        row_fill=0.9,
        masked_share=0.3,
        duplicate_rows=0.0,
        unknown_tokens=0.0,
    )
    pretraining = PretrainResult(
        folder=Path("my quick/pretrained"), steps=1234, seconds=77.0, data=report, heldout={}, before={}
    )
    return QuickstartResult(
        output=Path("my quick"),
        size="tiny",
        text="1.0 MB",
        task="Which?",
        losses=[8.25, 6.0, 4.5],
        pretraining=pretraining,
        blanks=[],
        scores={"untrained network": scratch, "pre-trained": pretrained},
        seconds=99.0,
    )


def test_a_gain_above_the_spread_of_seeds_is_reported() -> None:
    lines = replace(result(score(0.4, 0.42), score(0.59, 0.61)), task="Task: which?\nAccuracy:").lines()
    assert not any("\n" in line for line in lines), "the terminal shows it as two characters"
    assert "  untrained network       41.0%  ± 1.4 over 2 seeds" in lines
    assert "  pre-trained             60.0%  ± 1.4 over 2 seeds" in lines
    assert "  Pre-training was worth 19.0 points over the best of the others (untrained network)." in lines


@pytest.mark.parametrize(("better", "measured"), [((0.4, 0.45), r"\+0.5 points"), ((0.3, 0.31), r"-11.5 points")])
def test_a_gain_within_the_spread_of_seeds_is_not_called_one(better: tuple[float, ...], measured: str) -> None:
    (line,) = [each for each in result(score(0.41, 0.43), score(*better)).lines() if "did not pay" in each]
    assert measured.replace("\\", "") in line
    assert "--minutes" in line


def test_the_gain_is_over_the_best_alternative() -> None:
    lines = result(score(0.3), score(0.6)).lines()
    assert "  bag of words            40.5%" in lines
    assert "  Pre-training was worth 19.5 points over the best of the others (bag of words)." in lines


def test_the_suggested_fine_tuning_has_the_default_settings_of_small_networks() -> None:
    lines = result(score(0.4), score(0.5)).lines()
    assert "  bertkit finetune YOUR.csv --model 'my quick/pretrained' -o runs/yours" in lines


def test_commands_quote_paths() -> None:
    lines = result(score(0.4), score(0.5)).lines()
    assert "  bertkit pretrain 'my quick/data' --profile fast --minutes 60 -o runs/mini" in lines


def test_curve_is_scaled_to_eight_levels_and_forty_bars() -> None:
    assert draw_curve([8.0, 4.0, 1.0]) == "█▄▁"
    assert draw_curve([5.0]) == "▁"
    assert draw_curve([float(80 - place) for place in range(80)])[::13] == "█▅▃▁"
    assert len(draw_curve([1.0, 2.0] * 99)) == 40
