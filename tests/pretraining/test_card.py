from __future__ import annotations

from dataclasses import replace

import pytest

from bertkit.data.shards import read_manifest
from bertkit.encoders.bert import BertConfig
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain
from bertkit.pretraining.task import PretrainingTask
from bertkit.report.progress import Progress


def card_of(run: PretrainRun) -> str:
    """The card with single spaces between words and columns."""
    pretrain(run, Progress("quiet"))
    return " ".join((run.output / "model" / "README.md").read_text(encoding="utf-8").split())


def test_a_card_states_architecture_data_and_losses(run: PretrainRun) -> None:
    card = card_of(run)
    (source,) = read_manifest(run.data).sources
    assert "# BERT 1/14/2" in card
    assert 'pipeline_tag: "fill-mask"' in card
    assert "pre-trained for 10 steps with seed 0" in card
    assert "texts.jsonl" in card and source.sha256 in card
    for name in ("mlm", "nsp", "mlm_accuracy", "mlm_perplexity"):
        assert f"| {name} |" in card


def test_changed_settings_are_listed_without_the_others(run: PretrainRun) -> None:
    card = card_of(replace(run, steps=7, seed=3))
    assert "| long_seq_length | 41 |" in card
    assert "| seed | 3 |" in card
    assert "optimizer.beta2" not in card


def test_the_first_objective_that_says_what_it_is_for_gives_the_tag(run: PretrainRun) -> None:
    card = card_of(replace(run, task=PretrainingTask(objectives=("nsp", "mlm"))))
    assert 'pipeline_tag: "fill-mask"' in card


@pytest.mark.parametrize("causal", [False, True])
def test_the_pipeline_tag_is_that_of_the_objective(run: PretrainRun, causal: bool) -> None:
    assert isinstance(run.encoder, BertConfig)
    task = PretrainingTask(objectives=("clm",) if causal else ("mlm",))
    card = card_of(replace(run, encoder=replace(run.encoder, causal=causal), task=task))
    assert f'pipeline_tag: "{"text-generation" if causal else "fill-mask"}"' in card


def test_the_shares_of_a_mixture_are_stated(mixed: PretrainRun) -> None:
    card = card_of(mixed)
    assert "with seed 0, on rows of which 75.0% are from data and 25.0% are from books." in card
    assert "data/texts.jsonl" in card and "books/books.jsonl" in card
    assert "mix." not in card
