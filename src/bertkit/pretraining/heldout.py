"""Held-out losses and accuracies during a pre-training."""

from __future__ import annotations

import math

import torch

from bertkit.contracts import Objective
from bertkit.errors import BertkitError
from bertkit.pretraining.job import PretrainingJob
from bertkit.pretraining.phases import Phase
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder, read_metrics
from bertkit.training.evaluation import evaluate_losses

_KIND = "heldout"
"""The kind of these records in ``metrics.jsonl``."""


def evaluate_heldout(job: PretrainingJob, phase: Phase, folder: RunFolder, progress: Progress) -> dict[str, float]:
    """Measure, log and report the losses on held-out rows; empty where no documents are held out.

    Every loss over a vocabulary comes with its perplexity. Raises an error if a loss is not finite.
    """
    measured = measure_losses(job, phase)
    if not measured:
        return {}
    if not all(value < math.inf for value in measured.values()):
        raise BertkitError(f"the held-out loss is not finite at step {job.state.step}. Lower --set optimizer.lr.")
    for objective in job.state.model.objectives.values():
        assert isinstance(objective, Objective)
        if objective.predicts_vocabulary and objective.label in measured:
            measured[f"{objective.label}_perplexity"] = float(torch.tensor(measured[objective.label]).exp())
    folder.log({"kind": _KIND, "step": job.state.step, **measured})
    shown = ", ".join(f"{name} {value:.3f}" for name, value in measured.items())
    progress.say(f"step {job.state.step:,}, held out: {shown}")
    return measured


def measure_losses(job: PretrainingJob, phase: Phase) -> dict[str, float]:
    """Mean losses and accuracies on the held-out rows of ``phase``; empty where no documents are held out.

    ``nsp_base_rate`` is the accuracy of a model that gives every pair the more frequent label.
    """
    if phase.heldout is None:
        return {}
    with job.state.averaged():
        measured = evaluate_losses(
            job.state.model,
            phase.heldout,
            batch_size=phase.plan.micro_batch_size or phase.plan.batch_size,
            precision=phase.plan.precision,
            limit=job.run.evaluation_examples,
        )
    if "nsp_random" in measured:
        random_share = measured.pop("nsp_random")
        measured["nsp_base_rate"] = max(random_share, 1 - random_share)
    return measured


def last_evaluation(folder: RunFolder) -> dict[str, float]:
    """The last logged evaluation, which a run that is resumed after its last step reports; empty if there is none."""
    records = read_metrics(folder.metrics) if folder.metrics.exists() else []
    measured = [record for record in records if record["kind"] == _KIND]
    return {name: value for name, value in measured[-1].items() if name not in ("kind", "step")} if measured else {}
