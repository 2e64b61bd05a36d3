"""Calls on a Ray cluster: results in order, a node that dies, and clusters that are not there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ray_nodes import kill_second_node, two_nodes
from tests.remote_calls import double_slowly, fail, read_text

from bertkit.errors import BertkitError
from bertkit.storage.ray_cluster import map_on_cluster

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as cluster:
        yield cluster


def test_results_are_in_order_and_few_are_in_memory(cluster: Any) -> None:
    taken = 0

    def numbers() -> Iterator[int]:
        nonlocal taken
        while taken < 13:
            taken += 1
            yield taken

    for done, (number, (result, _)) in enumerate(map_on_cluster(double_slowly, numbers(), calls=3), start=1):
        assert number == done
        assert result == 2 * number
        assert taken <= done + 3


def test_relative_paths_are_those_of_the_caller(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("here")
    monkeypatch.chdir(tmp_path)
    assert list(map_on_cluster(read_text, ["a.txt"])) == [("a.txt", "here")]


def test_the_error_of_a_call_is_one_line(cluster: Any) -> None:
    with pytest.raises(BertkitError, match="the Ray cluster failed: LookupError: number 7") as caught:
        list(map_on_cluster(fail, [7]))
    assert "\n" not in str(caught.value)


def test_calls_of_a_node_that_dies_are_repeated(cluster: Any) -> None:
    nodes = set()
    for number, (result, node) in map_on_cluster(double_slowly, range(30)):
        assert result == 2 * number
        nodes.add(node)
        if number == 9:
            assert len(nodes) == 2
            kill_second_node(cluster)


@pytest.mark.parametrize("named_by", ["environment", "file"])
def test_a_cluster_that_is_not_there_is_an_error(tmp_path: Path, named_by: str) -> None:
    """The address of a cluster that was killed stays in the file; Ray itself would wait for it."""
    pytest.importorskip("ray", reason="needs bertkit[ray]")
    file = tmp_path / "ray_current_cluster"
    file.write_text("127.0.0.1:9\n")
    program = f"""
from pathlib import Path
from bertkit.errors import BertkitError
from bertkit.storage import ray_cluster
ray_cluster._CURRENT_CLUSTER = Path({str(file)!r})
try:
    list(ray_cluster.map_on_cluster(str, [1]))
except BertkitError as error:
    print(error, error.exit_code)
"""
    environment = {**os.environ, "RAY_ADDRESS": "127.0.0.1:9" if named_by == "environment" else ""}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=40)
    assert ran.stdout == (
        "--engine ray: there is no Ray cluster at 127.0.0.1:9. Start one with: ray start --head, or set RAY_ADDRESS to "
        "that of a cluster. 2\n"
    )
