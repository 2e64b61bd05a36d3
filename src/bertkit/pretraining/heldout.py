"""Held-out losses and accuracies during a pre-training."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial

from bertkit.errors import DivergenceError
from bertkit.pretraining.job import PretrainingJob
from bertkit.pretraining.phases import Phase
from bertkit.pretraining.task import Source
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder, read_metrics
from bertkit.training.evaluation import evaluate_losses

_KIND = "heldout"
"""The kind of these records in ``metrics.jsonl``."""

_BEFORE = "before"
"""The key of the record of the model that a run continues from."""

_LARGEST_EXPONENT = math.log(sys.float_info.max)
"""A diverged model can have a larger loss; JSON, in which the record of a run is written, has no infinity."""

_SECOND = "also_"
"""The names of what was measured on the second folder begin with this."""


def evaluate_heldout(
    job: PretrainingJob, phase: Phase, folder: RunFolder, progress: Progress, *, is_before: bool = False
) -> dict[str, float]:
    """Measure, log and report the losses on held-out rows; empty where no documents are held out.

    Every loss over a vocabulary comes with its perplexity, unless that is too large for a number. Raises
    DivergenceError if a loss is not finite.
    """
    measured = measure_losses(job, phase, partial(progress.part, "held out"))
    if not measured:
        return {}
    if not all(value < math.inf for value in measured.values()):
        step = job.state.step
        raise DivergenceError(f"the held-out loss is not finite at step {step:,}. Train again with a lower --lr.")
    for objective in job.state.model.heads.values():
        for label in (objective.label, f"{_SECOND}{objective.label}"):
            if objective.predicts_vocabulary and measured.get(label, math.inf) < _LARGEST_EXPONENT:
                measured[f"{label}_perplexity"] = math.exp(measured[label])
    mark = {_BEFORE: True} if is_before else {}
    folder.log({"kind": _KIND, "step": job.state.step, **mark, **measured})
    shown = ", ".join(f"{name} {value:.3f}" for name, value in measured.items())
    progress.say(f"step {job.state.step:,}, held out: {shown}")
    return measured


def measure_losses(
    job: PretrainingJob, phase: Phase, report: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, float]:
    """Mean losses and accuracies on the held-out rows of ``phase``, and of the second folder; empty where there are
    none.

    ``report(done, total)`` is called after every batch. ``nsp_base_rate`` is the accuracy of a model that gives every
    pair the more frequent label.
    """
    measured: dict[str, float] = {}
    with job.state.averaged():
        for prefix, source in (("", phase.heldout), (_SECOND, phase.second_heldout)):
            if source is not None:
                measured |= {f"{prefix}{name}": value for name, value in _measure(job, phase, source, report).items()}
    return measured


def _measure(job: PretrainingJob, phase: Phase, source: Source, report: Callable[[int, int], None]) -> dict[str, float]:
    measured = evaluate_losses(
        job.state.model,
        source,
        batch_size=phase.plan.micro_batch_size or phase.plan.batch_size,
        precision=phase.plan.precision,
        limit=job.run.evaluation_examples,
        group=job.group,
        report=report,
    )
    if "nsp_random" in measured:
        random_share = measured.pop("nsp_random")
        measured["nsp_base_rate"] = max(random_share, 1 - random_share)
    return measured


def evaluate_starting_model(job: PretrainingJob, phase: Phase, folder: RunFolder, progress: Progress) -> None:
    """Evaluate the encoder of a model before the first step that changes it, unless that was done before a resume.

    By then its new heads, if it has any, are trained. The rows are those of the last phase with steps, as at the end.
    """
    if job.run.from_model is None or phase.heads_only or phase.first != job.run.heads_until:
        return
    if job.group.broadcast(not read_last_evaluation(folder, before=True)):
        begin = time.perf_counter()
        last = next(each for each in reversed(job.phases) if each.first < each.until)
        evaluate_heldout(job, last, folder, progress, is_before=True)
        if job.run.is_timed and job.state.step:  # between two phases: the time of a run begins with its first step
            job.state.elapsed += job.group.all_reduce_max(time.perf_counter() - begin)


def read_last_evaluation(folder: RunFolder, *, before: bool = False) -> dict[str, float]:
    """The last logged evaluation, or with ``before`` that of the model that the run continues from; empty without one.

    A run that is resumed after its last step reports it.
    """
    records = read_metrics(folder.metrics) if folder.metrics.exists() else []
    found = [record for record in records if record["kind"] == _KIND and bool(record.get(_BEFORE)) is before]
    last = found[-1] if found else {}
    return {name: value for name, value in last.items() if name not in ("kind", "step", _BEFORE)}
