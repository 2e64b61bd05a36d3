"""Two processes train together and write their results as JSON; ``conftest.py`` runs this through torchrun.

torchrun --nproc-per-node 2 -m tests.training.two_processes RESULTS.json
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TypedDict

import numpy as np
import pytest
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from tests.training.tiny_training import (
    ScaledLoss,
    Sentences,
    are_equal,
    copy_groups,
    largest_difference,
    make_plan,
    make_state,
    run,
    turn_dropout_off,
    weights_and_moments,
)

from bertkit.batch import Batch
from bertkit.encoders.bert import Bert
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup, join_process_group
from bertkit.training.evaluation import evaluate_losses
from bertkit.training.fit import Plan, Step, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.sharding import read_shards, shard, write_shards

ROWS = 20
"""The batch size. Of 41 rows an epoch leaves one for its last batch, and so none for the second process."""

SHARDS = "shards"
"""The folder of the sharded checkpoint, beside the results."""

StepNumbers = dict[str, float]
"""The tokens, the gradient norm ("norm") and the losses of a step."""


class GroupSizes(TypedDict):
    """Losses of one process, of two, and of one, then two, then one; and the largest difference of their weights."""

    one: list[StepNumbers]
    two: list[StepNumbers]
    changing: list[StepNumbers]
    weight_difference: float


class SkippedSteps(TypedDict):
    """Which steps were skipped, and whether weights stayed the same in the skipped one and agree in the end."""

    skipped: list[bool]
    unchanged: bool
    processes_agree: bool


class Evaluations(TypedDict):
    """Losses and accuracies in one process and in two, and the rows that the first of two reads."""

    one: dict[str, float]
    two: dict[str, float]
    rows: list[int]
    ordered: dict[str, float]
    ordered_rows: list[int]


class Results(TypedDict):
    """What ``main`` writes."""

    group_sizes: GroupSizes
    resume: dict[str, bool]
    loss_not_finite: SkippedSteps
    sharded: list[StepNumbers]
    evaluations: Evaluations
    waited: int


class Recorded(Sentences):
    """Sentences that remember which of them were read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        self.read += indices.tolist()
        return super().batch(epoch, indices)


class Ordered(Recorded):
    """The same with an order of their own."""

    def num_batches(self, batch_size: int) -> int:
        return len(self) // batch_size

    def order(self, batch_size: int, step: int) -> NDArray[np.int64]:
        return np.arange(step * batch_size, (step + 1) * batch_size)


def train(state: TrainingState, plan: Plan, *stages: tuple[ProcessGroup, int]) -> list[StepNumbers]:
    """Train up to the step of each stage, in its group."""
    steps: list[Step] = []
    for group, until in stages:
        steps += fit(state, Sentences(), plan, until=until, group=group)
    return [{"tokens": step.tokens, "norm": step.grad_norm, **step.losses} for step in steps]


def assert_same_steps(steps: list[StepNumbers], expected: list[StepNumbers]) -> None:
    for found, reference in zip(steps, expected, strict=True):
        assert found["tokens"] == reference["tokens"]
        assert found["mlm"] == pytest.approx(reference["mlm"], abs=1e-6)
        assert found["nsp"] == pytest.approx(reference["nsp"], abs=1e-6)
        assert found["norm"] == pytest.approx(reference["norm"], rel=1e-5)


def change_group_sizes(group: ProcessGroup) -> GroupSizes:
    states = [make_state() for _ in range(3)]
    stages = [
        [(SINGLE_PROCESS, 12)],
        [(group, 12)],
        [(SINGLE_PROCESS, 4), (group, 8), (SINGLE_PROCESS, 12)],
    ]
    for state in states:
        turn_dropout_off(state.model)
    plan = make_plan(batch_size=ROWS, micro_batch_size=7)
    one, two, changing = (train(state, plan, *each) for state, each in zip(states, stages, strict=True))
    difference = max(largest_difference(state, states[0]) for state in states[1:])
    return {"one": one, "two": two, "changing": changing, "weight_difference": difference}


def resume_with_dropout(group: ProcessGroup) -> dict[str, bool]:
    """Twelve steps with dropout, and the same with an interruption."""
    uninterrupted, stopped = make_state(), make_state()
    plan = make_plan(batch_size=ROWS)
    torch.manual_seed(group.rank)
    losses = train(uninterrupted, plan, (group, 12))
    resumed_losses = train(stopped, plan, (group, 5))
    groups = copy_groups(stopped)
    resumed = make_state()
    torch.rand(7)
    resumed.restore(groups, 5)
    resumed_losses += train(resumed, plan, (group, 12))
    single = run(make_state(), plan)
    return {
        "losses agree": losses == resumed_losses,
        "weights agree": group.all_reduce_max(not are_equal(uninterrupted, resumed)) == 0,
        "processes agree": agrees(group, uninterrupted),
        "dropout is on": single[-1].losses["mlm"] != losses[-1]["mlm"],
    }


def train_with_nan(group: ProcessGroup) -> SkippedSteps:
    """The loss of the second process is NaN in the third step."""
    state = make_state()
    if not group.is_first:
        factors = iter([1.0, 1.0, float("nan"), 1.0])
        state.model.loss = ScaledLoss(state.model, factors)  # type: ignore[assignment, method-assign]
    steps = fit(state, Sentences(), make_plan(batch_size=ROWS), group=group)
    skipped = [next(steps).skipped for _ in range(2)]
    before = checksum(state)
    skipped.append(next(steps).skipped)
    unchanged = group.all_reduce_max(checksum(state) != before) == 0
    skipped.append(next(steps).skipped)
    return {"skipped": skipped, "unchanged": unchanged, "processes_agree": agrees(group, state)}


def train_sharded(group: ProcessGroup, folder: Path) -> list[StepNumbers]:
    """Five steps with sharded weights, and seven after loading them, now with gradient checkpointing."""

    def build() -> TrainingState:
        model = make_state().model
        turn_dropout_off(model)
        assert isinstance(model.encoder, Bert)
        shard(model, model.encoder.layers)
        return TrainingState(model, build_optimizer(model, OptimizerConfig(lr=1e-3)))

    first, second = build(), build()
    plan = make_plan(batch_size=ROWS, micro_batch_size=7)
    steps = train(first, plan, (group, 5))
    write_shards(folder, first.groups())
    groups = second.groups()
    read_shards(folder, groups)
    second.restore(groups, 5)
    second.model.encoder.gradient_checkpointing = True
    return steps + train(second, plan, (group, 12))


def evaluate(group: ProcessGroup) -> Evaluations:
    """41 rows in three batches, so that the second process has one batch less; without 1 row if they are ordered."""
    model = make_state().model
    alone, shared, ordered = Recorded(), Recorded(), Ordered()
    one = evaluate_losses(model, alone, batch_size=ROWS, precision="float32")
    two = evaluate_losses(model, shared, batch_size=ROWS, precision="float32", group=group)
    own = evaluate_losses(model, ordered, batch_size=ROWS, precision="float32", group=group)
    assert group.all_reduce_max(two["mlm"]) == -group.all_reduce_max(-two["mlm"])
    return {"one": one, "two": two, "rows": shared.read, "ordered": own, "ordered_rows": ordered.read}


def wait_for_first(group: ProcessGroup) -> int:
    """A number from the first process, which takes longer than the others wait for one that hangs."""
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=2))

    def compute() -> int:
        time.sleep(5)
        return 7

    number = group.from_first(compute)
    assert group.all_reduce_max(number) == -group.all_reduce_max(-number)
    return number


def agrees(group: ProcessGroup, state: TrainingState) -> bool:
    """Whether the weights of all processes are equal."""
    return group.all_reduce_max(checksum(state)) == -group.all_reduce_max(-checksum(state))


def checksum(state: TrainingState) -> float:
    return sum(float(value.double().sum()) for value in weights_and_moments(state).values())


def main(file: Path) -> None:
    torch.set_num_threads(1)
    with join_process_group() as group:
        results: Results = {
            "group_sizes": change_group_sizes(group),
            "resume": resume_with_dropout(group),
            "loss_not_finite": train_with_nan(group),
            "sharded": train_sharded(group, file.parent / SHARDS),
            "evaluations": evaluate(group),
            "waited": wait_for_first(group),
        }
        if group.is_first:
            file.write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
