from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from bertkit.encoders.bert import BertConfig
from bertkit.errors import BertkitError
from bertkit.pretraining import heldout
from bertkit.pretraining.heldout import evaluate_heldout, measure_losses, read_last_evaluation
from bertkit.pretraining.job import PretrainingJob, build_job
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.task import PretrainingTask
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder, read_metrics


@pytest.fixture
def folder(run: PretrainRun) -> Iterator[RunFolder]:
    with RunFolder(run.output) as opened:
        yield opened


@pytest.fixture
def job(run: PretrainRun) -> PretrainingJob:
    return build_job(run)


def test_losses_over_the_vocabulary_come_with_a_perplexity(
    job: PretrainingJob, folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    job.state.step = 5
    found = evaluate_heldout(job, job.phases[0], folder, Progress("plain"))
    assert set(found) == {"mlm", "nsp", "mlm_accuracy", "nsp_accuracy", "nsp_base_rate", "mlm_perplexity"}
    assert 0.5 <= found["nsp_base_rate"] < 1
    assert found["mlm_perplexity"] == pytest.approx(math.exp(found["mlm"]))
    assert read_metrics(folder.metrics) == [{"kind": "heldout", "step": 5, **found}]
    assert f"step 5, held out: mlm {found['mlm']:.3f}" in capsys.readouterr().err


@pytest.mark.parametrize("random_share", [0.3, 0.7])
def test_the_base_rate_of_pairs_is_that_of_the_more_frequent_label(
    job: PretrainingJob, monkeypatch: pytest.MonkeyPatch, random_share: float
) -> None:
    monkeypatch.setattr(heldout, "evaluate_losses", lambda *_, **__: {"nsp_random": random_share})
    assert measure_losses(job, job.phases[0]) == {"nsp_base_rate": 0.7}


@pytest.mark.parametrize(("micro_batch_size", "rows"), [(3, 3), (None, 7)])
def test_as_many_rows_are_evaluated_at_once_as_are_trained_at_once(
    run: PretrainRun, monkeypatch: pytest.MonkeyPatch, micro_batch_size: int | None, rows: int
) -> None:
    job = build_job(replace(run, micro_batch_size=micro_batch_size))
    monkeypatch.setattr(heldout, "evaluate_losses", lambda *_, batch_size, **__: {"rows": batch_size})
    assert measure_losses(job, job.phases[0]) == {"rows": rows}


def test_each_objective_of_a_language_model_has_its_own_perplexity(run: PretrainRun, folder: RunFolder) -> None:
    assert isinstance(run.encoder, BertConfig)
    encoder = replace(run.encoder, causal=True)
    job = build_job(replace(run, encoder=encoder, task=PretrainingTask(objectives=("clm",))))
    assert "clm_perplexity" in evaluate_heldout(job, job.phases[0], folder, Progress("quiet"))


def test_a_loss_that_is_not_finite_is_an_error(job: PretrainingJob, folder: RunFolder) -> None:
    with torch.no_grad():
        next(job.state.model.parameters()).fill_(math.nan)
    with pytest.raises(BertkitError, match=r"held-out loss is not finite at step 0\. Train again with a lower --lr"):
        evaluate_heldout(job, job.phases[0], folder, Progress("quiet"))
    assert read_last_evaluation(folder) == {}


def test_nothing_is_measured_without_heldout_documents(job: PretrainingJob, folder: RunFolder) -> None:
    phase = replace(job.phases[0], heldout=None)
    assert measure_losses(job, phase) == {}
    assert evaluate_heldout(job, phase, folder, Progress("quiet")) == {}
    assert not folder.metrics.exists()


def test_the_last_evaluation_is_read_from_the_log(folder: RunFolder) -> None:
    assert read_last_evaluation(folder) == {}
    folder.log({"kind": "heldout", "step": 0, "mlm": 9.5, "before": True})
    assert read_last_evaluation(folder) == {}
    assert read_last_evaluation(folder, before=True) == {"mlm": 9.5}
    folder.log({"kind": "heldout", "step": 5, "mlm": 7.0})
    folder.log({"kind": "heldout", "step": 10, "mlm": 6.5})
    folder.log({"kind": "train", "step": 11, "loss/mlm": 3.0})
    assert read_last_evaluation(folder) == {"mlm": 6.5}


def test_evaluation_is_limited_to_evaluation_examples(run: PretrainRun) -> None:
    few, more = (build_job(replace(run, evaluation_examples=count)) for count in (7, 70))
    assert measure_losses(few, few.phases[0]) != measure_losses(more, more.phases[0])


def test_a_perplexity_too_large_for_a_number_is_left_out(
    job: PretrainingJob, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON, in which the record of the run is written, has no infinity."""
    monkeypatch.setattr(heldout, "measure_losses", lambda *_: {"mlm": 154924.6, "nsp": 1.0})
    assert evaluate_heldout(job, job.phases[0], folder, Progress("quiet")) == {"mlm": 154924.6, "nsp": 1.0}
