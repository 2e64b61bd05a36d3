"""Pre-training from start to finish: open the corpus, build, fit, evaluate, save, report."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bertkit import config
from bertkit.checkpoint import training_state as store
from bertkit.config import Setting
from bertkit.errors import BertkitError, usage_error
from bertkit.pretraining.card import fingerprint, write_pretraining_card
from bertkit.pretraining.job import PretrainingJob, build_job
from bertkit.pretraining.phases import Phase
from bertkit.pretraining.record import PretrainRun, pretraining_from_json
from bertkit.pretraining.resuming import check_unchanged
from bertkit.pretraining.saving import restore_state, save_result, save_state
from bertkit.report.plots import plot_training
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder, read_metrics, read_run
from bertkit.storage.atomic import require_space
from bertkit.task_types.pretraining import DataReport
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup, join_process_group
from bertkit.training.evaluation import evaluate_losses
from bertkit.training.fit import Step, fit
from bertkit.training.flops import count_flops, peak_flops
from bertkit.training.interrupts import Interrupted, Interrupts
from bertkit.training.precision import choose_precision, default_device

_MEASURED_SHARE = 0.03
_LEAST_MEASURED_SECONDS = 3.0
_SHARE_FOR_STEPS = 0.95

_WORDS = ("mlm", "causal", "bilm")
"""The loss terms of which a perplexity is told."""


@dataclass(frozen=True, kw_only=True)
class PretrainResult:
    """What a pre-training came to. ``heldout`` has the loss of every term and the hit rates."""

    folder: Path
    steps: int
    seconds: float
    data: DataReport
    heldout: dict[str, float]


def pretrain(run: PretrainRun, progress: Progress, *, origins: Mapping[str, str] | None = None) -> PretrainResult:
    """Run a pre-training into a new folder; ``origins`` tell where each setting came from, for the record.

    Raises Interrupted (and has saved) on Ctrl-C or SIGTERM, BertkitError on anything the user can mend.
    """
    with _begin(run.output, progress) as (group, folder, progress):
        if folder.writes and folder.record.exists():
            raise usage_error(f"{run.output} holds a run already. Give --resume {run.output}, or another -o folder.")
        job = build_job(_resolve(run, progress, group), group)
        _require_space(job, folder)
        for line in job.data.lines():
            progress.say(line)
        origins = {**(origins or {}), **_measured(run, job.run)}
        about: dict[str, Any] = {"data_report": job.data.record(), "data": fingerprint(job.run)}
        # So far there was nothing to lose, and a signal ended it at once; from here on the first one asks.
        with Interrupts(distributed=group.size > 1) as interrupts:
            folder.begin(**job.about, kind="pretrain", origins=origins, **about)
            return _train(job, folder, interrupts, progress)


def resume(path: Path, progress: Progress, settings: Sequence[Setting] = ()) -> PretrainResult:
    """Go on with an interrupted pre-training from its newest good checkpoint, with any number of processes.

    With as many as before what follows is the same, bit for bit. ``settings`` may change how often something is
    logged, measured or saved; others, and other data, are refused.
    """
    record = read_begun(path)
    with _begin(path, progress) as (group, folder, progress):
        recorded = dataclasses.replace(pretraining_from_json(record["run"], source=f"{path}/run.json"), output=path)
        run = config.apply(recorded, settings)
        newest, faults = group.broadcast(store.latest(folder.checkpoints) if group.is_first else (None, []))
        for fault in faults:
            progress.say(f"{fault} Falling back to the checkpoint before it.")
        saved = store.load_state(newest) if newest else {}
        check_unchanged(run, saved if "run" in saved else record)
        job = build_job(run, group)
        if newest is None:
            progress.say(f"{path} has no checkpoint yet; starting again from step 0")
        else:
            restore_state(job, newest, saved)
            progress.say(f"resuming at step {job.state.step:,} of {job.total_steps:,}")
        _require_space(job, folder)
        with Interrupts(distributed=group.size > 1) as interrupts:
            if folder.writes:
                folder.forget(lambda record: bool(record["step"] > job.state.step))
                folder.note(**job.about)
            return _train(job, folder, interrupts, progress)


def read_begun(path: Path) -> dict[str, Any]:
    """The record of a pre-training; other runs are not resumed."""
    record = read_run(path)
    if record.get("kind") != "pretrain":
        raise usage_error(f"{path} is not a pre-training run; only those are resumed.")
    return record


def _require_space(job: PretrainingJob, folder: RunFolder) -> None:
    """See that the disk has room for the checkpoints that are kept, one more while it is written, and the models."""
    if not folder.writes:
        return
    groups = job.state.groups()
    sizes = {name: sum(tensor.nbytes for tensor in group.values()) for name, group in groups.items()}
    missing = max(1, job.run.keep_checkpoints + 1 - len(store.checkpoints(folder.checkpoints)))
    require_space(folder.path, missing * sum(sizes.values()) + job.run.snapshots * sizes["model"])


@contextmanager
def _begin(path: Path, progress: Progress) -> Iterator[tuple[ProcessGroup, RunFolder, Progress]]:
    """The run folder ``path`` in the hands of the first process; the others write nothing and are silent."""
    with join_process_group() as group, RunFolder(path, writes=group.is_first) as folder:
        if folder.notice:
            progress.say(folder.notice)
        yield group, folder, progress if group.is_first else Progress("quiet")


def _resolve(run: PretrainRun, progress: Progress, group: ProcessGroup) -> PretrainRun:
    """Fill in what is measured: the precision, and the steps that fit into ``minutes``. The first process decides."""
    if (run.steps is None) == (run.minutes is None):
        raise usage_error("give either --steps or --minutes.")
    run = dataclasses.replace(run, precision=group.broadcast(run.precision or choose_precision(default_device())))
    if run.minutes is None:
        return run
    seconds = measure_step(run, max(_LEAST_MEASURED_SECONDS, _MEASURED_SHARE * run.minutes * 60), group)
    steps = max(1, int(run.minutes * 60 * _SHARE_FOR_STEPS / seconds))
    progress.say(f"a step takes {seconds:.2f} s in {run.precision}: {steps:,} steps in {run.minutes:g} minutes")
    return dataclasses.replace(run, steps=steps)


def _measured(asked: PretrainRun, run: PretrainRun) -> dict[str, str]:
    """The origins of what ``_resolve`` filled in."""
    return {name: "measured" for name in ("precision", "steps") if getattr(asked, name) != getattr(run, name)}


def measure_step(run: PretrainRun, seconds: float, group: ProcessGroup = SINGLE_PROCESS) -> float:
    """Seconds a training step takes, the mean over all phases, found by training a model that is thrown away."""
    job = build_job(dataclasses.replace(run, steps=1_000_000), group)
    mean = 0.0
    for phase in job.phases:
        job.state.step = phase.first
        steps = fit(job.state, phase.source, phase.plan, first_step=phase.first, group=group)
        next(steps)
        taken: list[float] = []
        while not taken or sum(taken) < seconds / len(job.phases):
            taken.append(group.all_reduce_max(next(steps).seconds))
        mean += sum(taken) / len(taken) * (phase.until - phase.first) / job.total_steps
    return mean


def train_briefly(run: PretrainRun, steps: int) -> None:
    """Some steps of every phase and an evaluation, of a model that is thrown away: all that takes memory in a run."""
    job = build_job(run)
    for phase in job.phases:
        job.state.step = phase.first
        for step in fit(job.state, phase.source, phase.plan, first_step=phase.first):
            if step.step == phase.first + steps:
                break
        _measure_losses(job, phase)


def _train(job: PretrainingJob, folder: RunFolder, interrupts: Interrupts, progress: Progress) -> PretrainResult:
    begin = time.monotonic()
    run, state, total, group = job.run, job.state, job.total_steps, job.group
    group.barrier()  # so that all heed a request to stop once the first says that it has begun
    progress.start("pretraining", total, "step")
    progress.advance(state.step)
    saved, heldout = state.step, _last_heldout(folder)
    peak = peak_flops(default_device(), run.precision or "float32")
    for phase in job.phases:
        for step in _steps(job, phase):
            mfu = step.flops / step.seconds / (peak * group.size) if peak else None
            progress.advance(step.step, **_figures(step, mfu))
            if step.step % run.log_every == 0 or step.step == total:
                folder.log(_record(step, mfu))
            if step.step % run.evaluate_every == 0 or step.step == total:
                heldout = _evaluate(job, phase, folder, progress)
            # Before the checkpoint: what is not written when a crash comes is made again by the resume.
            if step.step < total and is_snapshot(step.step, total, run.snapshots):
                save_result(job, folder.models / f"step-{step.step:08}", heldout)
            signal_number = int(group.all_reduce_max(interrupts.requested))
            if step.step % run.save_every == 0 or signal_number:
                saved = save_state(job, folder)
            if signal_number:
                progress.finish()
                message = f"stopped after step {saved:,}, saved. Resume: bertkit pretrain --resume {folder.path}"
                raise Interrupted(signal_number, message if group.is_first else "")
    if saved != state.step:
        save_state(job, folder)
    progress.finish()
    seconds = time.monotonic() - begin
    save_result(job, folder.model, heldout)
    if folder.writes:
        _finish(job, folder, seconds, heldout)
    return PretrainResult(folder=folder.path, steps=total, seconds=seconds, data=job.data, heldout=heldout)


def _finish(job: PretrainingJob, folder: RunFolder, seconds: float, heldout: dict[str, float]) -> None:
    """Describe the result: the model's card, the curve, how the run ended."""
    write_pretraining_card(folder, job.run, heldout)
    plot_training(read_metrics(folder.metrics), folder.path / "training.png")
    folder.note(ended="done", seconds=round(seconds, 1), heldout=heldout)


def _steps(job: PretrainingJob, phase: Phase) -> Iterator[Step]:
    """The steps that a phase still has."""
    phase.begin(job.state)
    return fit(
        job.state,
        phase.source,
        phase.plan,
        first_step=phase.first,
        until=phase.until,
        group=job.group,
        count_flops=partial(count_flops, job.state.model),
    )


def _figures(step: Step, mfu: float | None) -> dict[str, Any]:
    figures = {"loss": sum(step.losses.values()), "tokens/s": step.tokens / step.seconds}
    return figures if mfu is None else {**figures, "mfu": round(mfu, 2)}


def _record(step: Step, mfu: float | None) -> dict[str, Any]:
    return {
        "kind": "train",
        "step": step.step,
        "epoch": step.epoch,
        **{f"loss/{name}": loss for name, loss in step.losses.items()},
        "lr": step.lr,
        "grad_norm": step.grad_norm,
        "tokens": step.tokens,
        "tokens_per_second": round(step.tokens / step.seconds, 1),
        "flops_per_second": round(step.flops / step.seconds),
        "mfu": None if mfu is None else round(mfu, 4),
        "skipped": step.skipped,
    }


def _evaluate(job: PretrainingJob, phase: Phase, folder: RunFolder, progress: Progress) -> dict[str, float]:
    measured = _measure_losses(job, phase)
    if not measured:
        return {}
    if not all(value < float("inf") for value in measured.values()):
        raise BertkitError(f"the held-out loss is not finite at step {job.state.step}. Lower --set optimizer.lr.")
    words = next(name for name in _WORDS if name in measured)
    measured[f"{words}_perplexity"] = float(torch.tensor(measured[words]).exp())
    folder.log({"kind": "heldout", "step": job.state.step, **measured})
    shown = ", ".join(f"{name} {value:.3f}" for name, value in measured.items())
    progress.say(f"step {job.state.step:,}, held out: {shown}")
    return measured


def _measure_losses(job: PretrainingJob, phase: Phase) -> dict[str, float]:
    """The held-out losses and hit rates; nothing where no documents are held out."""
    if phase.heldout is None:
        return {}
    return evaluate_losses(
        job.state.model,
        phase.heldout,
        batch_size=phase.plan.micro_batch_size or phase.plan.batch_size,
        precision=phase.plan.precision,
        limit=job.run.evaluation_examples,
    )


def is_snapshot(step: int, total: int, snapshots: int) -> bool:
    """Whether one of so many parts of ``total`` steps is complete with this one."""
    return step * snapshots // total > (step - 1) * snapshots // total


def _last_heldout(folder: RunFolder) -> dict[str, float]:
    """What was measured last before a resume; a run that is resumed at its end measures nothing more."""
    records = read_metrics(folder.metrics) if folder.metrics.exists() else []
    measured = [record for record in records if record["kind"] == "heldout"]
    return {name: value for name, value in measured[-1].items() if name not in ("kind", "step")} if measured else {}
