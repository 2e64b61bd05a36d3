"""Several processes make the same updates as one. ``two_processes.py`` is what two of them run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.two_processes import Results, assert_same_steps

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.training import distributed
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup, join_process_group


@settings(deadline=None)
@given(st.integers(1, 99), st.integers(1, 13), st.integers(1, 37))
def test_shares_partition_the_batch_into_equally_many_micro_batches(count: int, size: int, rows: int) -> None:
    indices = np.arange(count) * 7
    shares = [ProcessGroup(rank=rank, size=size).share(indices, rows) for rank in range(size)]
    assert np.concatenate([part for share in shares for part in share]).tolist() == indices.tolist()
    assert len({len(share) for share in shares}) == 1
    assert max(len(part) for share in shares for part in share) <= rows


def test_a_single_process_gets_its_own_values_back() -> None:
    value = object()
    assert SINGLE_PROCESS.all_reduce_sum([3, 7]) == [3, 7]
    assert (SINGLE_PROCESS.all_reduce_max(2.5), SINGLE_PROCESS.broadcast(value)) == (2.5, value)
    assert SINGLE_PROCESS.from_first(lambda: value) is value


def test_the_number_of_processes_changes_no_batch_and_no_loss(two_process_results: Results) -> None:
    """The processes have unequal numbers of labels, and the last batch of an epoch has only one row."""
    found = two_process_results["group_sizes"]
    for steps in (found["two"], found["changing"]):
        assert_same_steps(steps, found["one"])
    assert found["weight_difference"] < 1e-5


def test_a_resume_of_two_processes_is_bit_exact_with_dropout_on(two_process_results: Results) -> None:
    assert all(two_process_results["resume"].values()), two_process_results["resume"]


def test_work_of_the_first_process_may_take_long(two_process_results: Results) -> None:
    assert two_process_results["waited"] == 7


def test_every_process_and_step_has_its_own_seed() -> None:
    seeds = {ProcessGroup(rank=rank, size=3).seed(5, step) for rank in range(3) for step in range(7)}
    assert len(seeds) == 21


def test_a_loss_that_is_not_finite_in_one_process_is_skipped_by_all(two_process_results: Results) -> None:
    expected = {"skipped": [False, False, True, False], "unchanged": True, "processes_agree": True}
    assert two_process_results["loss_not_finite"] == expected


def test_more_processes_than_gpus_are_refused_with_what_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "WORLD_SIZE": "3",
        "RANK": "2",
        "LOCAL_RANK": "2",
        "MASTER_ADDR": "h",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "default_device", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    expected = r"^torchrun started more processes on this machine than it has GPUs \(2\): lower --nproc-per-node\.$"
    with pytest.raises(BertkitError, match=expected), join_process_group():
        pass


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"WORLD_SIZE": "abc"}, 'WORLD_SIZE="abc"; torchrun sets a whole number from 1'),
        ({"WORLD_SIZE": "0"}, 'WORLD_SIZE="0"'),
        ({"WORLD_SIZE": "-2"}, 'WORLD_SIZE="-2"'),
        ({"WORLD_SIZE": "1e3"}, 'WORLD_SIZE="1e3"'),
        ({"WORLD_SIZE": ""}, 'WORLD_SIZE=""'),
        ({"WORLD_SIZE": "\u0662"}, "WORLD_SIZE="),
        ({"RANK": "first"}, 'RANK="first"; torchrun sets a whole number from 0'),
        ({"RANK": "1"}, "RANK=1 and WORLD_SIZE=1; ranks are counted from 0"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 and no RANK"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "WORLD_SIZE=2 and no MASTER_ADDR"),
    ],
)
def test_an_environment_that_torchrun_did_not_make_is_refused(
    environment: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BertkitError, match=message) as caught, join_process_group():
        pass
    assert caught.value.exit_code == WRONG_USAGE
