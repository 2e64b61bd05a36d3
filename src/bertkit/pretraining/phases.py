"""The phases of a pre-training: short rows, then long rows if ``long_seq_length`` is set (paper, section A.2).

Before them, new heads on the encoder of a model are trained alone.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bertkit.data.mixture import Mixture
from bertkit.pretraining.data import LEAST_DOCUMENTS, PretrainingData
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.task import PretrainingSource, Source
from bertkit.training.fit import Plan, TrainingState
from bertkit.training.optimizer import OptimizerConfig, restart


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Steps ``first`` to ``until`` (exclusive) on rows of one length, and the held-out rows of that length.

    In a timed run ``first`` and ``until`` are seconds. The epochs of ``source`` are counted from step ``first_step``.
    ``second_heldout`` are the held-out rows of the second folder. In a phase with ``heads_only`` the encoder is frozen.
    """

    plan: Plan
    source: Source
    heldout: Source | None
    second_heldout: Source | None
    first: float
    until: float
    first_step: int
    heads_only: bool = False
    restarts: bool = False
    """Whether the optimizer and the schedule start again with this phase."""

    def begin(self, state: TrainingState) -> None:
        """Freeze or thaw the encoder, and restart the optimizer if this phase does so and is at its first step.

        A run that is resumed from a checkpoint of exactly that step restarts it here too.
        """
        for parameter in state.model.encoder.parameters():
            if parameter in state.optimizer.state:  # one without a state is frozen by the architecture
                parameter.requires_grad_(not self.heads_only)
        if self.restarts and state.step == self.first < self.until:
            restart(state.optimizer, self.plan.optimizer)


def build_phases(run: PretrainRun, data: PretrainingData) -> list[Phase]:
    """The phases of ``run`` on ``data``: that of new heads, if there are any, and one or two more.

    New heads have a schedule of their own; the others have one together or, with a restart, one each.
    Held-out rows are masked as at the end of the run, so that evaluations can be compared.
    """

    def source(corpus: Mixture, seq_length: int, seed: int) -> Source:
        return run.task.source(corpus, data.tokenizer, seq_length=seq_length, seed=seed)

    def heldout(corpus: Mixture | None, seq_length: int) -> Source | None:
        usable = None if corpus is None else corpus.with_documents(LEAST_DOCUMENTS)
        if usable is None:
            return None
        rows = source(usable, seq_length, 0)
        return rows.at(1.0) if isinstance(rows, PretrainingSource) else rows

    def make(plan: Plan, seq_length: int, first: float, until: float, *, restarts: bool = False) -> Phase:
        return Phase(
            plan=plan,
            source=source(data.train, seq_length, run.seed),
            heldout=heldout(data.heldout, seq_length),
            second_heldout=heldout(data.second_heldout, seq_length),
            first=first,
            until=until,
            # In a timed run the step at which a phase begins is not known yet, so its epochs are counted from step 0 of
            # the run. So are those of the first phase, which follows that of new heads.
            first_step=0 if run.is_timed or first == begin else int(first),
            restarts=restarts,
        )

    whole = _plan(run)
    begin, end = run.heads_until, run.length
    rest = _part(whole, begin, end)
    heads = []
    if begin:
        # Only lr is replaced: it is a rate for trained weights, and muon_lr one for new weights. _with_lr would raise
        # both by the same factor, muon_lr from 0.02 to 0.4.
        optimizer = dataclasses.replace(run.optimizer, lr=run.head_lr)
        alone = dataclasses.replace(_part(whole, 0, begin), optimizer=optimizer)
        heads = [dataclasses.replace(make(alone, run.seq_length, 0, begin), heads_only=True)]
    if run.long_seq_length is None:
        return [*heads, make(rest, run.seq_length, begin, end)]
    long = dataclasses.replace(
        rest,
        batch_size=run.long_batch_size or run.batch_size,
        optimizer=_with_lr(run.optimizer, run.long_lr),
    )
    restarts = run.long_phase == "restart"
    short = _part(whole, begin, run.first_long) if restarts else rest
    if restarts:
        warmup = run.schedule.warmup if run.long_warmup is None else run.long_warmup
        schedule = dataclasses.replace(run.schedule, warmup=warmup)
        long = dataclasses.replace(_part(long, run.first_long, end), schedule=schedule)
    return [
        *heads,
        make(short, run.seq_length, begin, run.first_long),
        make(long, run.long_seq_length, run.first_long, end, restarts=restarts),
    ]


def _with_lr(config: OptimizerConfig, lr: float | None) -> OptimizerConfig:
    """The same optimizer with another learning rate; that of Muon changes by the same factor."""
    if lr is None:
        return config
    ratio = lr / config.lr if config.lr else 1.0
    return dataclasses.replace(config, lr=lr, muon_lr=config.muon_lr * ratio)


def _part(plan: Plan, first: float, until: float) -> Plan:
    """``plan`` with a schedule from ``first`` to ``until``, in steps or seconds."""
    if plan.total_steps is None:
        return dataclasses.replace(plan, total_seconds=until - first, schedule_from=first)
    return dataclasses.replace(plan, total_steps=int(until - first), schedule_from=first)


def _plan(run: PretrainRun) -> Plan:
    return Plan(
        total_steps=None if run.is_timed else int(run.length),
        total_seconds=run.length if run.is_timed else None,
        batch_size=run.batch_size,
        micro_batch_size=run.micro_batch_size,
        optimizer=run.optimizer,
        schedule=run.schedule,
        precision=run.chosen_precision,
        seed=run.seed,
        loader_workers=run.loader_workers,
    )
