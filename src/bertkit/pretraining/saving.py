"""What a pre-training writes to disk: checkpoints to resume from, and models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import PRETRAINING_OBJECTIVES
from bertkit.checkpoint.save_model import save_model
from bertkit.errors import DivergenceError
from bertkit.pretraining.job import PretrainingJob, build_pretraining_model
from bertkit.runs import RunFolder
from bertkit.training import sharding
from bertkit.training.distributed import full_tensor


def save_state(job: PretrainingJob, folder: RunFolder) -> int:
    """Write a checkpoint and return its step; no process continues before the checkpoint is complete.

    Raises DivergenceError, and writes nothing, if a weight is not finite.
    """
    state, groups = job.state, job.state.groups()
    if not all(bool(full_tensor(weight).isfinite().all()) for weight in state.model.parameters()):
        raise DivergenceError(f"a weight is not finite at step {state.step}; the earlier checkpoints are valid.")
    job.data.train.check_untouched()

    def write_shards(temporary: Path | None) -> None:
        target = job.group.broadcast(temporary)
        assert target is not None, "the first process, which writes the checkpoint, has the folder"
        sharding.write_shards(target, groups)

    if folder.writes:
        folder.flush_log()
        facts = {
            "step": state.step,
            "skipped_in_a_row": state.skipped_in_a_row,
            "elapsed": state.elapsed,
            "seconds": job.watch.seconds,
            "joules": job.meter.joules,
            **job.identity,
        }
        if job.run.shard:
            written = store.save_written(folder.checkpoints, state.step, write_shards, facts)
        else:
            written = store.save(folder.checkpoints, state.step, groups, facts)
        store.prune(folder.checkpoints, job.run.keep_checkpoints, intact=[written])
    elif job.run.shard:
        write_shards(None)
    job.group.barrier()
    return state.step


def restore_state(job: PretrainingJob, checkpoint: Path, saved: Mapping[str, Any]) -> None:
    """Load the tensors of ``checkpoint`` into the job; ``saved`` is its JSON state."""
    if job.run.shard:
        store.verify(checkpoint)
        groups = job.state.groups()
        sharding.read_shards(checkpoint, groups)
    else:
        groups, _ = store.load(checkpoint)
    if job.group.size > 1:
        groups.pop("encoder_state", None)  # saved by the first process, for its own rows only
    job.state.restore(groups, int(saved["step"]), int(saved["skipped_in_a_row"]), float(saved.get("elapsed", 0.0)))
    # Earlier versions wrote only the seconds of timed runs.
    job.watch.before = float(saved.get("seconds", saved.get("elapsed", 0.0)))
    job.meter.before = saved.get("joules")


def save_current_model(job: PretrainingJob, folder: Path, heldout: Mapping[str, float]) -> None:
    """Write the model as it is now into the model folder ``folder``; called by all processes, written by the first."""
    model = job.state.model
    if job.run.shard and job.group.size > 1:
        weights = {name: full_tensor(tensor) for name, tensor in model.state_dict().items()}
        model = build_pretraining_model(job.run)
        model.load_state_dict(weights)
    if job.group.is_first:
        metadata = {
            "kind": "pretrain",
            "steps": job.state.step,
            PRETRAINING_OBJECTIVES: list(job.run.task.objectives),
            "heldout": dict(heldout),
        }
        with job.state.averaged():
            save_model(folder, model, job.data.tokenizer, metadata=metadata)
