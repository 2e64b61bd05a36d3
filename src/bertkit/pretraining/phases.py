"""The phases of a pre-training: short rows, then long rows if ``long_seq_length`` is set (paper, section A.2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bertkit.data.shards import Corpus
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.record import PretrainRun
from bertkit.task_types.pretraining import Source
from bertkit.training.fit import Plan, TrainingState
from bertkit.training.optimizer import restart


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Steps ``first`` to ``until`` (exclusive) on rows of one length, and the held-out rows of that length."""

    plan: Plan
    source: Source
    heldout: Source | None
    first: int
    until: int
    restarts: bool = False
    """Whether the optimizer and the schedule start again with this phase."""

    def begin(self, state: TrainingState) -> None:
        """Restart the optimizer if this phase does so and ``state`` is at its first step.

        A run that is resumed from a checkpoint of exactly that step restarts it here too.
        """
        if self.restarts and state.step == self.first < self.until:
            restart(state.optimizer, self.plan.optimizer)


def build_phases(run: PretrainRun, data: PretrainingData) -> list[Phase]:
    """The one or two phases of ``run`` on ``data``, under one schedule or, with a restart, one each."""

    def source(corpus: Corpus, seq_length: int, seed: int) -> Source:
        return run.task.source(corpus, data.tokenizer, seq_length=seq_length, seed=seed)

    def make(plan: Plan, seq_length: int, first: int, until: int, *, restarts: bool = False) -> Phase:
        return Phase(
            plan=plan,
            source=source(data.train, seq_length, run.seed),
            heldout=source(data.heldout, seq_length, 0) if data.heldout.num_documents > 1 else None,
            first=first,
            until=until,
            restarts=restarts,
        )

    plan = _plan(run)
    steps = plan.total_steps
    if run.long_seq_length is None:
        return [make(plan, run.seq_length, 0, steps)]
    first_long = steps - int(steps * run.long_share)
    long = dataclasses.replace(
        plan,
        batch_size=run.long_batch_size or run.batch_size,
        optimizer=dataclasses.replace(run.optimizer, lr=run.optimizer.lr if run.long_lr is None else run.long_lr),
    )
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
        total_steps=run.steps or 1,
        batch_size=run.batch_size,
        micro_batch_size=run.micro_batch_size,
        optimizer=run.optimizer,
        schedule=run.schedule,
        precision=run.precision or "float32",
        seed=run.seed,
        loader_workers=run.loader_workers,
    )
