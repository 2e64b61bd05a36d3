"""Sharded training equals unsharded training, and any number of processes can read its checkpoints."""

from __future__ import annotations

from pathlib import Path

from tests.training.tiny_training import make_plan, make_state, turn_dropout_off
from tests.training.two_processes import ROWS, Results, assert_same_steps, train

from bertkit.training.distributed import SINGLE_PROCESS
from bertkit.training.sharding import read_shards


def test_a_sharded_model_learns_the_same_also_after_a_resume(two_process_results: Results) -> None:
    assert_same_steps(two_process_results["sharded"], two_process_results["group_sizes"]["one"])


def test_one_process_can_read_a_checkpoint_of_two(two_process_results: Results, shards: Path) -> None:
    state = make_state()
    turn_dropout_off(state.model)
    groups = state.groups()
    for tensor in {**groups["model"], **groups["optimizer"]}.values():
        tensor.detach().fill_(7)
    read_shards(shards, groups)
    state.restore(groups, 5)
    steps = train(state, make_plan(batch_size=ROWS, micro_batch_size=7), (SINGLE_PROCESS, 12))
    assert_same_steps(steps, two_process_results["group_sizes"]["one"][5:])
