from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from bertkit.config.settings import apply, parse_settings
from bertkit.data.prepare import prepare
from bertkit.data.shards import TOKENIZER
from bertkit.encoders import bert
from bertkit.encoders.bert import BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.job import build_job, build_pretraining_model, check_division
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.task import PretrainingSource, PretrainingTask
from bertkit.text.loading import load_tokenizer
from bertkit.training.averaging import AveragingConfig
from bertkit.training.distributed import ProcessGroup
from bertkit.training.optimizer import OptimizerConfig


def encoder_of(run: PretrainRun) -> BertConfig:
    assert isinstance(run.encoder, BertConfig)
    return run.encoder


def test_a_batch_must_be_divisible_among_processes(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="batch_size is 7; 2 processes need a multiple"):
        build_job(run, ProcessGroup(size=2))
    with pytest.raises(BertkitError, match="long_batch_size is 3; 7 processes need a multiple"):
        build_job(replace(run, long_batch_size=3), ProcessGroup(size=7))


def test_averages_cannot_be_sharded(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="shard and averaging"):
        build_job(replace(run, shard=True, averaging=AveragingConfig(kind="ema")))


@pytest.mark.parametrize("kind", ["lamb", "muon"])
def test_lamb_and_muon_cannot_be_sharded(run: PretrainRun, kind: Literal["lamb", "muon"]) -> None:
    with pytest.raises(BertkitError, match=f"{kind} needs whole ones: give optimizer.kind=adam, or no shard"):
        build_job(replace(run, shard=True, optimizer=OptimizerConfig(kind=kind)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 13}, r"encoder\.vocab_size is 13; .*data has \d+ subwords"),
        ({"pad_id": 7}, r"encoder\.pad_id is 7; the rows of .* are padded with 0"),
        ({"max_positions": 40}, r"encoder\.max_positions is 40; sequences of 41 need more"),
    ],
)
def test_an_encoder_that_does_not_fit_the_corpus_is_refused(
    run: PretrainRun, changes: dict[str, int], message: str
) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        build_job(replace(run, encoder=replace(encoder_of(run), **changes)))  # type: ignore[arg-type]
    assert caught.value.exit_code == WRONG_USAGE


def test_the_seed_determines_the_initial_weights(run: PretrainRun) -> None:
    data = PretrainingData.open(run)
    first, again, other = (build_job(replace(run, seed=seed), data=data).state.model for seed in (3, 3, 4))
    assert all(torch.equal(one, two) for one, two in zip(first.parameters(), again.parameters(), strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(first.parameters(), other.parameters(), strict=True))


def test_opened_data_is_not_opened_again(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    data = PretrainingData.open(run)
    monkeypatch.setattr(PretrainingData, "open", None)
    assert build_job(run, data=data).data is data


def test_a_job_has_all_steps_and_a_report_on_its_rows(run: PretrainRun) -> None:
    job = build_job(run)
    assert (job.done, job.total) == (0, 10)
    assert job.report.examples_per_epoch == len(job.phases[0].source)
    assert set(job.identity) == {"run", "corpus", "also_evaluate"}


def test_the_model_has_the_objectives_of_the_task(run: PretrainRun) -> None:
    assert set(build_pretraining_model(run).objectives) == {"mlm", "nsp"}


def test_a_weight_without_a_name_is_found_before_the_first_step(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = bert.SPEC.huggingface.heads
    assert isinstance(heads, dict)
    monkeypatch.setitem(heads, "nsp", {"classifier.weight": ("cls.seq_relationship.weight",)})
    with pytest.raises(AssertionError, match=r"without a Hugging Face name.*classifier\.bias"):
        build_job(run)


def test_a_corpus_without_heldout_text_is_named(mixed: PretrainRun, tmp_path: Path) -> None:
    file, tokenizer = tmp_path / "more.jsonl", load_tokenizer(mixed.data / TOKENIZER)
    file.write_text('{"text": "It was dawn."}\n' * 9)
    prepare([file], tokenizer=tokenizer, output=tmp_path / "more", heldout=0)
    job = build_job(replace(mixed, mix={**mixed.mix, str(tmp_path / "more"): 0.25}))
    assert job.notes == [f"no held-out text in {tmp_path / 'more'}: only that of the other corpora is evaluated"]
    heldout = job.phases[0].heldout
    assert isinstance(heldout, PretrainingSource)
    assert [round(each.share, 1) for each in heldout.mixture] == [0.7, 0.3]
    assert build_job(mixed).notes == []
    alone = build_job(replace(mixed, data=tmp_path / "more", mix={}))
    assert "no held-out text: nothing is evaluated during or after the training" in alone.notes


def test_a_comparison_within_micro_batches_is_said(run: PretrainRun) -> None:
    compared = replace(run, task=PretrainingTask(objectives=("mlm", "passages")), long_seq_length=None)
    assert not any("compares" in note for note in build_job(compared, ProcessGroup()).notes)
    (note,) = build_job(replace(compared, micro_batch_size=2), ProcessGroup()).notes
    assert note == f"passages compares the 2 examples of a micro-batch, not the {run.batch_size} of a batch"
    long = replace(compared, long_seq_length=17, long_batch_size=run.batch_size + 3, micro_batch_size=run.batch_size)
    (note,) = build_job(long, ProcessGroup()).notes
    assert note.endswith(f"the {run.batch_size} examples of a micro-batch, not the {run.batch_size + 3} of a batch")


@pytest.mark.parametrize(
    ("setting", "processes"), [("micro_batch_size=1", 1), ("batch_size=1", 1), ("long_batch_size=2", 2)]
)
def test_a_comparison_needs_two_examples(run: PretrainRun, setting: str, processes: int) -> None:
    """The loss of one is 0, and its accuracy 1, whatever the network does."""
    compared = replace(run, task=PretrainingTask(objectives=("mlm", "passages")), batch_size=4, long_seq_length=17)
    check_division(compared, processes)
    alone = apply(compared, parse_settings([setting]))
    with pytest.raises(BertkitError, match=r"passages compares .*atch_size must be at least ., and micro_batch_size"):
        check_division(alone, processes)
    check_division(replace(alone, task=run.task), processes)


def test_a_passage_needs_positions_for_half_of_the_text(run: PretrainRun) -> None:
    task = PretrainingTask(objectives=("mlm", "passages"))
    longest = max(run.seq_length, run.long_seq_length or 0)
    enough = replace(run, task=task, encoder=replace(encoder_of(run), max_positions=(longest + 1) // 2))
    batch = build_job(enough, ProcessGroup()).phases[-1].source.batch(0, np.arange(5))
    assert batch.input_ids.shape[1] <= (longest + 1) // 2
    with pytest.raises(BertkitError, match="max_positions is"):
        build_job(replace(enough, encoder=replace(encoder_of(run), max_positions=longest // 2 - 1)), ProcessGroup())


def test_what_cannot_start_from_counts_is_said(run: PretrainRun) -> None:
    """The corpus is smaller than 10,000 tokens, and one head alone has no room for positions beside words."""
    asked = replace(run, token_init="cooccurrence", encoder=replace(encoder_of(run), hidden_size=12))
    (first,) = build_job(asked).notes
    assert first.startswith("token embeddings start at random: ")
    assert first.endswith(" tokens are too few to count neighbours")
    _, second = build_job(replace(asked, encoder=replace(encoder_of(asked), num_heads=1))).notes
    assert second == "no head starts by looking at neighbouring tokens: 1 heads in a width of 12 do not fit"
    assert build_job(run).notes == []


def test_a_share_without_a_step_is_reported(run: PretrainRun) -> None:
    (note,) = build_job(replace(run, long_share=0.05)).notes
    assert note == "no step has rows of 41 tokens: long_share 0.05 of 10 steps is less than one"
    assert build_job(replace(run, long_share=0.1)).notes == []
