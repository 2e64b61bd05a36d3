"""Two processes train together and write down what came of it; run by ``test_distributed.py`` through torchrun.

torchrun --nproc-per-node 2 together.py RESULTS.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tests.training.test_fit import Poisoned, Sentences, plan, run, same, state, weights
from torch import nn

from bertkit.encoders.bert import Bert
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup, join_process_group
from bertkit.training.fit import Plan, Step, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.sharding import read_shards, shard, write_shards

ROWS = 20
"""Of 41 rows an epoch leaves one for its last batch, and so none for the second process."""


def turn_dropout_off(model: nn.Module) -> None:
    for module in model.modules():
        for attribute in ("rate", "dropout"):
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, 0.0)


def train(trained: TrainingState, wanted: Plan, *stages: tuple[ProcessGroup, int]) -> list[dict[str, Any]]:
    """Up to the step of each stage in its group."""
    steps: list[Step] = []
    for group, until in stages:
        steps += fit(trained, Sentences(), wanted, until=until, group=group)
    return [{"tokens": step.tokens, "norm": step.grad_norm, **step.losses} for step in steps]


def in_turns(group: ProcessGroup) -> dict[str, Any]:
    """One process, or first one, then two, then one again."""
    found: dict[str, Any] = {}
    ends = {}
    turns = {
        "alone": [(SINGLE_PROCESS, 12)],
        "together": [(group, 12)],
        "in turns": [(SINGLE_PROCESS, 4), (group, 8), (SINGLE_PROCESS, 12)],
    }
    for name, stages in turns.items():
        ends[name] = state()
        turn_dropout_off(ends[name].model)
        found[name] = train(ends[name], plan(batch_size=ROWS, micro_batch_size=7), *stages)
    found["apart"] = max(
        float((value - weights(ends[name])[key]).abs().max())
        for name in ("together", "in turns")
        for key, value in weights(ends["alone"]).items()
    )
    return found


def after_a_resume(group: ProcessGroup) -> dict[str, Any]:
    """Twelve steps with dropout, and the same with a break."""
    whole, first = state(), state()
    torch.manual_seed(group.rank)
    losses = train(whole, plan(batch_size=ROWS), (group, 12))
    broken = train(first, plan(batch_size=ROWS), (group, 5))
    groups = {name: {key: value.clone() for key, value in group.items()} for name, group in first.groups().items()}
    second = state()
    torch.rand(7)
    second.restore(groups, 5)
    broken += train(second, plan(batch_size=ROWS), (group, 12))
    alone = run(state(), plan(batch_size=ROWS))
    return {
        "losses agree": losses == broken,
        "weights agree": group.all_reduce_max(not same(whole, second)) == 0,
        "processes agree": group.all_reduce_max(checksum(whole)) == -group.all_reduce_max(-checksum(whole)),
        "dropout is on": alone[-1].losses["mlm"] != losses[-1]["mlm"],
    }


def with_poison(group: ProcessGroup) -> dict[str, Any]:
    """A loss of the second process is not a number in the third step."""
    trained = state()
    if not group.is_first:
        poisons = iter([1.0, 1.0, float("nan"), 1.0])
        trained.model.loss = Poisoned(trained.model, poisons)  # type: ignore[assignment, method-assign]
    steps = fit(trained, Sentences(), plan(batch_size=ROWS), group=group)
    skipped = [next(steps).skipped for _ in range(2)]
    before = checksum(trained)
    skipped.append(next(steps).skipped)
    unchanged = group.all_reduce_max(checksum(trained) != before) == 0
    skipped.append(next(steps).skipped)
    agree = group.all_reduce_max(checksum(trained)) == -group.all_reduce_max(-checksum(trained))
    return {"skipped": skipped, "unchanged": unchanged, "agree": agree}


def when_sharded(group: ProcessGroup) -> list[dict[str, Any]]:
    """With weights and moments divided, and saved after the fifth step; then again from there, keeping less."""

    def build() -> TrainingState:
        model = state().model
        turn_dropout_off(model)
        assert isinstance(model.encoder, Bert)
        shard(model, model.encoder.layers)
        return TrainingState(model, build_optimizer(model, OptimizerConfig(lr=1e-3)))

    folder = Path(sys.argv[1]).parent / "shards"
    first, second = build(), build()
    steps = train(first, plan(batch_size=ROWS, micro_batch_size=7), (group, 5))
    write_shards(folder, first.groups())
    groups = second.groups()
    read_shards(folder, groups)
    second.restore(groups, 5)
    second.model.encoder.gradient_checkpointing = True
    return steps + train(second, plan(batch_size=ROWS, micro_batch_size=7), (group, 12))


def checksum(trained: TrainingState) -> float:
    return sum(float(value.double().sum()) for value in weights(trained).values())


def main() -> None:
    torch.set_num_threads(1)
    with join_process_group() as group:
        results = {each.__name__: each(group) for each in (in_turns, after_a_resume, with_poison, when_sharded)}
        if group.is_first:
            Path(sys.argv[1]).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
