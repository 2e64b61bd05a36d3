from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bertkit.encoder_types.architectures import configure_architecture
from bertkit.encoders.bert import BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.pretraining.record import PretrainRun, pretraining_from_json, pretraining_to_json
from bertkit.pretraining.task import PretrainingTask


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"long_seq_length": None, "long_lr": 1e-3}, "long_lr needs long_seq_length"),
        ({"long_seq_length": None, "long_phase": "restart"}, "long_phase needs long_seq_length"),
        ({"long_seq_length": 8}, "long_seq_length is 8 and seq_length 13; it must be longer"),
        ({"long_warmup": 0.1}, "long_warmup needs long_phase=restart"),
        ({"long_batch_size": 0}, "long_batch_size is 0; it must be from 1 to"),
        ({"long_lr": -1e-3}, "long_lr is -0.001; it must be from 0 to"),
    ],
)
def test_invalid_settings_of_long_rows_are_refused(run: PretrainRun, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        replace(run, **changes)


def bert_of(run: PretrainRun) -> BertConfig:
    assert isinstance(run.encoder, BertConfig)
    return run.encoder


@pytest.mark.parametrize(
    ("causal", "objectives", "message"),
    [
        (True, ("mlm", "nsp"), r"a causal encoder: give --set 'task\.objectives=\[\"clm\"\]'\."),
        (True, ("mlm", "nsp"), "task.objectives has mlm, which needs an encoder in which every token attends to all"),
        (False, ("clm",), "task.objectives has clm, which needs a causal encoder; this one is an encoder in which"),
        (False, ("clm",), r"give --set 'task\.objectives=\[\"mlm\", \"nsp\"\]', or encoder\.causal=true\."),
        (True, ("clm", "nsp"), "task.objectives has nsp, which needs an encoder in which every token attends to all"),
    ],
)
def test_objectives_that_do_not_suit_the_encoder_are_refused(
    run: PretrainRun, causal: bool, objectives: tuple[str, ...], message: str
) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        replace(
            run,
            encoder=replace(bert_of(run), causal=causal),
            task=PretrainingTask(objectives=objectives),
        )
    assert caught.value.exit_code == WRONG_USAGE


def test_the_encoder_of_another_model_cannot_be_changed(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match=r"leave it out of task\.objectives, as the encoder is that of runs/a\."):
        replace(run, from_model=Path("runs/a"), task=PretrainingTask(objectives=("mlm", "clm")))


def test_tokens_per_step_are_the_mean_over_both_phases(run: PretrainRun) -> None:
    assert replace(run, long_seq_length=None).tokens_per_step == 7 * 13
    assert run.tokens_per_step == pytest.approx(0.7 * 7 * 13 + 0.3 * 7 * 41)
    assert replace(run, long_batch_size=3).tokens_per_step == pytest.approx(0.7 * 7 * 13 + 0.3 * 3 * 41)


def test_a_record_is_read_as_it_was_written(run: PretrainRun) -> None:
    record = pretraining_to_json(run)
    assert record["architecture"] == "bert"
    assert pretraining_from_json(record) == run


def test_an_lstm_is_for_finetuning(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match=r"encoder\.lstm_layers is for fine-tuning"):
        PretrainRun(data=Path("data"), output=Path("run"), encoder=replace(bert_of(run), lstm_layers=1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mix": {"a": 0.0}}, r"mix\.a is 0\.0; it must be above 0 and below 1"),
        ({"mix": {"a": float("nan")}}, r"mix\.a is nan; it must be above 0 and below 1"),
        ({"mix": {"a": 0.7, "b": 0.4}}, r"mix takes 1\.1 of the rows, and DATA gives the rest"),
        ({"mix": {"a": 0.5}, "task": PretrainingTask(copies=2)}, r"mix and task\.copies cannot be combined"),
    ],
)
def test_invalid_mixtures_are_refused(run: PretrainRun, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        replace(run, **changes)
    assert caught.value.exit_code == WRONG_USAGE


def test_streams_are_not_mixed() -> None:
    task = PretrainingTask(objectives=("bilm",), targets=99)
    encoder = configure_architecture("elmo", "tiny", vocab_size=99)
    with pytest.raises(BertkitError, match="mix is for rows in random order, and those of bilm follow each other"):
        PretrainRun(data=Path("data"), output=Path("run"), encoder=encoder, task=task, mix={"books": 0.5})


def test_the_corpora_have_all_rows(run: PretrainRun) -> None:
    assert run.corpora == [(run.data, 1.0)]
    first, *others = replace(run, mix={"a": 0.5, "b": 0.2}).corpora
    assert (first[0], round(first[1], 9)) == (run.data, 0.3)
    assert others == [(Path("a"), 0.5), (Path("b"), 0.2)]


@pytest.mark.parametrize(("steps", "until"), [(1000, 100), (19, 1), (9, 1), (2, 1)])
def test_a_new_head_is_trained_alone_at_least_one_step(run: PretrainRun, steps: int, until: int) -> None:
    assert replace(run, steps=steps, head_share=0.1, from_model=Path("model")).heads_until == until
    assert replace(run, steps=steps).heads_until == 0


def test_one_step_is_too_few_for_a_new_head(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match=r"head_share trains a new head before the encoder.*take 2"):
        replace(run, steps=1, head_share=0.1, from_model=Path("model"))
