"""The phases of a pre-training: short rows, then long rows if ``long_seq_length`` is set (paper, section A.2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bertkit.data.shards import Corpus
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.record import PretrainRun
from bertkit.task_types.pretraining import PretrainingSource, Source
from bertkit.training.fit import Plan, TrainingState
from bertkit.training.optimizer import restart


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Steps ``first`` to ``until`` (exclusive) on rows of one length, and the held-out rows of that length.

    In a timed run ``first`` and ``until`` are seconds. The epochs of ``source`` are counted from step ``first_step``.
    """

    plan: Plan
    source: Source
    heldout: Source | None
    first: float
    until: float
    first_step: int
    restarts: bool = False
    """Whether the optimizer and the schedule start again with this phase."""

    def begin(self, state: TrainingState) -> None:
        """Restart the optimizer if this phase does so and ``state`` is at its first step.

        A run that is resumed from a checkpoint of exactly that step restarts it here too.
        """
        if self.restarts and state.step == self.first < self.until:
            restart(state.optimizer, self.plan.optimizer)


def build_phases(run: PretrainRun, data: PretrainingData) -> list[Phase]:
    """The one or two phases of ``run`` on ``data``, under one schedule or, with a restart, one each.

    Held-out rows are masked as at the end of the run, so that evaluations can be compared.
    """

    def source(corpus: Corpus, seq_length: int, seed: int) -> Source:
        return run.task.source(corpus, data.tokenizer, seq_length=seq_length, seed=seed)

    def heldout(seq_length: int) -> Source | None:
        if data.heldout.num_documents < 2:
            return None
        rows = source(data.heldout, seq_length, 0)
        return rows.at(1.0) if isinstance(rows, PretrainingSource) else rows

    def make(plan: Plan, seq_length: int, first: float, until: float, *, restarts: bool = False) -> Phase:
        return Phase(
            plan=plan,
            source=source(data.train, seq_length, run.seed),
            heldout=heldout(seq_length),
            first=first,
            until=until,
            # The first step of a phase that begins at a certain second is not known before; its rows go on counting.
            first_step=0 if run.is_timed else int(first),
            restarts=restarts,
        )

    plan = _plan(run)
    if run.long_seq_length is None:
        return [make(plan, run.seq_length, 0, plan.total)]
    long = dataclasses.replace(
        plan,
        batch_size=run.long_batch_size or run.batch_size,
        optimizer=dataclasses.replace(run.optimizer, lr=run.optimizer.lr if run.long_lr is None else run.long_lr),
    )
    if plan.total_steps is None:
        begin = plan.total * (1 - run.long_share)
        return [make(plan, run.seq_length, 0, begin), make(long, run.long_seq_length, begin, plan.total)]
    steps = plan.total_steps
    first_long = steps - int(steps * run.long_share)
    restarts = run.long_phase == "restart"
    if restarts:
        warmup = run.schedule.warmup if run.long_warmup is None else run.long_warmup
        schedule = dataclasses.replace(run.schedule, warmup=warmup)
        plan = dataclasses.replace(plan, total_steps=first_long)
        long = dataclasses.replace(long, total_steps=steps - first_long, schedule_from=first_long, schedule=schedule)
    return [
        make(plan, run.seq_length, 0, first_long),
        make(long, run.long_seq_length, first_long, steps, restarts=restarts),
    ]


def _plan(run: PretrainRun) -> Plan:
    return Plan(
        total_steps=None if run.is_timed else run.steps or 1,
        total_seconds=(run.minutes or 0) * 60 if run.is_timed else None,
        batch_size=run.batch_size,
        micro_batch_size=run.micro_batch_size,
        optimizer=run.optimizer,
        schedule=run.schedule,
        precision=run.precision or "float32",
        seed=run.seed,
        loader_workers=run.loader_workers,
    )
