"""Several processes make the updates that one would make. ``together.py`` is what two of them do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.test_fit import plan, state
from tests.training.together import ROWS, train, turn_dropout_off

from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup
from bertkit.training.sharding import read_shards

ROOT = Path(__file__).resolve().parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("together")


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    file = folder / "results.json"
    ended = subprocess.run(
        [*TORCHRUN, "-m", "tests.training.together", str(file)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def assert_same(steps: list[dict[str, Any]], alone: list[dict[str, Any]]) -> None:
    for one, other in zip(steps, alone, strict=True):
        assert one["tokens"] == other["tokens"]
        assert one["mlm"] == pytest.approx(other["mlm"], abs=1e-6)
        assert one["nsp"] == pytest.approx(other["nsp"], abs=1e-6)
        assert one["norm"] == pytest.approx(other["norm"], rel=1e-5)


@settings(deadline=None)
@given(st.integers(1, 99), st.integers(1, 13), st.integers(1, 37))
def test_shares_make_up_the_batch_and_have_as_many_micro_batches(count: int, size: int, rows: int) -> None:
    indices = np.arange(count) * 7
    shares = [ProcessGroup(rank=rank, size=size).share(indices, rows) for rank in range(size)]
    assert np.concatenate([part for share in shares for part in share]).tolist() == indices.tolist()
    assert len({len(share) for share in shares}) == 1
    assert max(len(part) for share in shares for part in share) <= rows


def test_alone_nothing_is_exchanged() -> None:
    value = object()
    assert SINGLE_PROCESS.all_reduce_sum([3, 7]) == [3, 7]
    assert (SINGLE_PROCESS.all_reduce_max(2.5), SINGLE_PROCESS.broadcast(value)) == (2.5, value)


def test_one_process_two_and_one_again_see_the_same_batches_and_losses(results: dict[str, Any]) -> None:
    """Terms have unequal numbers of labels in the two processes, and the last batch of an epoch only one row."""
    found = results["in_turns"]
    for name in ("together", "in turns"):
        assert_same(found[name], found["alone"])
    assert found["apart"] < 1e-5


def test_a_resume_of_two_processes_is_bit_exact_with_dropout_on(results: dict[str, Any]) -> None:
    assert all(results["after_a_resume"].values()), results["after_a_resume"]


def test_every_process_and_step_draws_numbers_of_its_own() -> None:
    seeds = {ProcessGroup(rank=rank, size=3).seed(5, step) for rank in range(3) for step in range(7)}
    assert len(seeds) == 21


def test_a_loss_that_is_not_finite_in_one_process_is_skipped_by_all(results: dict[str, Any]) -> None:
    assert results["with_poison"] == {"skipped": [False, False, True, False], "unchanged": True, "agree": True}


def test_a_sharded_model_learns_the_same_also_after_a_resume(results: dict[str, Any]) -> None:
    assert_same(results["when_sharded"], results["in_turns"]["alone"])


def test_one_process_reads_what_two_have_sharded(results: dict[str, Any], folder: Path) -> None:
    alone = state()
    turn_dropout_off(alone.model)
    groups = alone.groups()
    for tensor in {**groups["model"], **groups["optimizer"]}.values():
        tensor.detach().fill_(7)
    read_shards(folder / "shards", groups)
    alone.restore(groups, 5)
    assert_same(
        train(alone, plan(batch_size=ROWS, micro_batch_size=7), (SINGLE_PROCESS, 12)), results["in_turns"]["alone"][5:]
    )
