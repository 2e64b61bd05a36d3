"""The steps of a pre-training, with everything that happens between them: log, evaluate, save, stop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from shlex import quote

from bertkit.lookup import spell_trust
from bertkit.machine.device import default_device
from bertkit.machine.interrupts import Interrupted, Interrupts
from bertkit.pretraining.heldout import evaluate_heldout, evaluate_starting_model, read_last_evaluation
from bertkit.pretraining.job import PretrainingJob
from bertkit.pretraining.phases import Phase
from bertkit.pretraining.saving import save_current_model, save_state
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder
from bertkit.training.fit import Step, fit
from bertkit.training.flops import count_flops, peak_flops


def train(job: PretrainingJob, folder: RunFolder, interrupts: Interrupts, progress: Progress) -> dict[str, float]:
    """Train until the last step is saved, and return the last held-out evaluation.

    Raises Interrupted after a step that was saved, on Ctrl-C or SIGTERM to any of the processes.
    """
    run, state, total, group = job.run, job.state, job.total, job.group
    group.barrier()  # all processes listen for signals before the first one reports that training has begun
    progress.start("pretraining", round(total), "second" if run.is_timed else "step")
    progress.advance(int(job.done))
    before = job.done
    saved, heldout = state.step, read_last_evaluation(folder)
    peak = peak_flops(default_device(), run.chosen_precision)
    for phase in job.phases:
        if before >= total:  # it is resumed after its last step, or that was in an earlier phase
            break
        evaluate_starting_model(job, phase, folder, progress)
        for step in _steps(job, phase):
            mfu = step.flops / step.seconds / (peak * group.size) if peak and step.flops else None
            done, is_last = job.done, job.done >= total
            joules = job.meter.joules  # of every step, as a counter begins again after half an hour of full load
            progress.advance(min(int(done), round(total)), **_figures(step, mfu))
            if step.skipped:
                progress.say(f"step {step.step:,} changed no weight: its loss or gradient was not finite")
            if step.step % run.log_every == 0 or is_last:
                clock = {"elapsed": done} if run.is_timed else {}
                energy = {} if joules is None else {"joules": round(joules)}
                folder.log(_record(step, mfu, phase.source.seq_length) | clock | energy)
            if step.step % run.evaluate_every == 0 or is_last:
                heldout = evaluate_heldout(job, phase, folder, progress)
            # A snapshot is saved before the checkpoint of its step: if a crash comes between, the resume repeats both.
            if not is_last and is_snapshot(before, done, total, run.snapshots):
                measured = heldout if step.step % run.evaluate_every == 0 else {}
                save_current_model(job, folder.models / f"step-{step.step:08}", measured)
            before = done
            signal_number = int(group.all_reduce_max(interrupts.requested))
            if step.step % run.save_every == 0 or signal_number:
                saved = save_state(job, folder)
            if signal_number:
                progress.finish()
                command = f"{spell_trust()}bertkit pretrain --resume {quote(str(folder.path))}"
                message = f"stopped after step {saved:,}, saved. Resume: {command}"
                raise Interrupted(signal_number, message if group.is_first else "")
    if saved != state.step:
        save_state(job, folder)
    progress.finish()
    return heldout


def is_snapshot(before: float, done: float, total: float, snapshots: int) -> bool:
    """Whether one of the ``snapshots`` equal parts of ``total`` ends after ``before`` and not after ``done``."""
    return done * snapshots // total > before * snapshots // total


def _steps(job: PretrainingJob, phase: Phase) -> Iterator[Step]:
    """The remaining steps of a phase; of the last phase of a timed run at least one.

    Saving or evaluating after the step before can take all of its time.
    """
    phase.begin(job.state)
    is_last = job.run.is_timed and phase is job.phases[-1]
    return fit(
        job.state,
        phase.source,
        phase.plan,
        first_step=phase.first_step,
        until=max(phase.until, math.nextafter(job.done, math.inf)) if is_last else phase.until,
        group=job.group,
        count_flops=partial(count_flops, job.state.model),
    )


def _figures(step: Step, mfu: float | None) -> dict[str, float]:
    figures = {"loss": step.loss, "tokens/s": step.tokens / step.seconds}
    return figures if mfu is None else {**figures, "mfu": round(mfu, 2)}


def _record(step: Step, mfu: float | None, seq_length: int) -> dict[str, object]:
    return {
        "kind": "train",
        "step": step.step,
        "epoch": step.epoch,
        "seq_length": seq_length,
        **{f"loss/{name}": loss for name, loss in step.losses.items()},
        "lr": step.lr,
        "grad_norm": step.grad_norm,
        "tokens": step.tokens,
        "tokens_per_second": round(step.tokens / step.seconds, 1),
        "flops": step.flops,
        "flops_per_second": round(step.flops / step.seconds),
        "mfu": None if mfu is None else round(mfu, 4),
        "skipped": step.skipped,
    }
