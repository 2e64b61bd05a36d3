from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.errors import BertkitError, DivergenceError
from bertkit.pretraining.job import PretrainingJob, build_job
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.saving import restore_state, save_current_model, save_state
from bertkit.runs import RunFolder
from bertkit.training.fit import fit


@pytest.fixture
def folder(run: PretrainRun) -> Iterator[RunFolder]:
    with RunFolder(run.output) as opened:
        yield opened


@pytest.fixture
def job(run: PretrainRun) -> PretrainingJob:
    return build_job(replace(run, keep_checkpoints=2))


def train(job: PretrainingJob, until: int) -> None:
    phase = job.phases[0]
    for _ in fit(job.state, phase.source, phase.plan, first_step=phase.first_step, until=until):
        pass


def test_a_restored_state_continues_like_the_saved_one(
    job: PretrainingJob, run: PretrainRun, folder: RunFolder
) -> None:
    train(job, 2)
    assert save_state(job, folder) == 2
    train(job, 4)
    (checkpoint,) = store.checkpoints(folder.checkpoints)
    other = build_job(replace(run, seed=run.seed))
    restore_state(other, checkpoint, store.load_state(checkpoint))
    assert other.state.step == 2
    train(other, 4)
    pairs = zip(job.state.model.parameters(), other.state.model.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


def test_old_checkpoints_are_deleted(job: PretrainingJob, folder: RunFolder) -> None:
    for step in (1, 2, 3):
        train(job, step)
        save_state(job, folder)
    kept = sorted(checkpoint.name for checkpoint in store.checkpoints(folder.checkpoints))
    assert kept == ["step-00000002", "step-00000003"]


def test_a_checkpoint_holds_the_settings_and_the_hash_of_the_corpus(job: PretrainingJob, folder: RunFolder) -> None:
    save_state(job, folder)
    (checkpoint,) = store.checkpoints(folder.checkpoints)
    saved = store.load_state(checkpoint)
    assert {name: saved[name] for name in job.identity} == job.identity


def test_weights_that_are_not_finite_are_not_saved(job: PretrainingJob, folder: RunFolder) -> None:
    with torch.no_grad():
        next(job.state.model.parameters())[0] = torch.nan
    with pytest.raises(DivergenceError, match="a weight is not finite at step 0"):
        save_state(job, folder)
    assert list(store.checkpoints(folder.checkpoints)) == []


def test_a_corpus_that_changed_stops_the_run(job: PretrainingJob, folder: RunFolder) -> None:
    next(iter(job.data.train.corpora[0].stamps)).touch()
    with pytest.raises(BertkitError, match="has changed since it was verified"):
        save_state(job, folder)


def test_the_model_is_written_with_its_step_and_losses(job: PretrainingJob, tmp_path: Path) -> None:
    train(job, 3)
    save_current_model(job, tmp_path / "model", {"mlm": 7.0})
    written = ModelFolder.open(tmp_path / "model")
    assert written.metadata["steps"] == 3
    assert written.metadata["heldout"] == {"mlm": 7.0}
    for name, weight in written.load_encoder().state_dict().items():
        assert torch.equal(weight, job.state.model.encoder.state_dict()[name]), name
