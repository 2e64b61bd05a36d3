"""The phases of a pre-training: short rows, and then long ones where they are asked for (paper, section A.2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bertkit.contracts import SubwordTokenizer
from bertkit.data.shards import Corpus
from bertkit.pretraining.record import PretrainRun
from bertkit.task_types.pretraining import Source
from bertkit.training.fit import Plan, TrainingState
from bertkit.training.optimizer import restart


@dataclass(frozen=True, kw_only=True)
class Phase:
    """The steps from ``first`` up to ``until``, on rows of one length, and the held-out rows of that length."""

    plan: Plan
    source: Source
    heldout: Source | None
    first: int
    until: int
    restarts: bool = False
    """Whether the optimizer forgets what came before."""

    def begin(self, state: TrainingState) -> None:
        """Make ``state`` ready for the steps that this phase still has.

        A state that was saved after the last step before this phase is that of the step, so a resume comes here too.
        """
        if self.restarts and state.step == self.first < self.until:
            restart(state.optimizer, self.plan.optimizer)


def build_phases(run: PretrainRun, corpus: Corpus, tokenizer: SubwordTokenizer) -> list[Phase]:
    """The phases of ``run`` on ``corpus``, which share one schedule or have one each."""
    heldout = Corpus.open(run.data, "heldout")

    def make(plan: Plan, seq_length: int, first: int, until: int, *, restarts: bool = False) -> Phase:
        measured = run.task.source(heldout, tokenizer, seq_length=seq_length, seed=0)
        return Phase(
            plan=plan,
            source=run.task.source(corpus, tokenizer, seq_length=seq_length, seed=run.seed),
            heldout=measured if heldout.num_documents > 1 else None,
            first=first,
            until=until,
            restarts=restarts,
        )

    plan = _plan(run)
    steps = plan.total_steps
    if run.long_seq_length is None:
        return [make(plan, run.seq_length, 0, steps)]
    joint = steps - int(steps * run.long_share)
    long = dataclasses.replace(
        plan,
        batch_size=run.long_batch_size or run.batch_size,
        optimizer=dataclasses.replace(run.optimizer, lr=run.optimizer.lr if run.long_lr is None else run.long_lr),
    )
    restarts = run.long_phase == "restart"
    if restarts:
        warmup = run.schedule.warmup if run.long_warmup is None else run.long_warmup
        schedule = dataclasses.replace(run.schedule, warmup=warmup)
        plan = dataclasses.replace(plan, total_steps=joint)
        long = dataclasses.replace(long, total_steps=steps - joint, schedule_from=joint, schedule=schedule)
    return [
        make(plan, run.seq_length, 0, joint),
        make(long, run.long_seq_length, joint, steps, restarts=restarts),
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
