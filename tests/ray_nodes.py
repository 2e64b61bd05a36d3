"""A real Ray cluster of two nodes on this machine, for tests."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A ``ray.cluster_utils.Cluster`` to which this process is connected; each node has one core."""
    ray = pytest.importorskip("ray", reason="needs bertkit[ray]")
    path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray starts its processes with a niceness of 15, with which they do nothing on a busy machine.
        patch.setenv("RAY_worker_niceness", "0")
        cluster = importlib.import_module("ray.cluster_utils").Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        try:
            cluster.add_node(num_cpus=1)
            ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def kill_second_node(cluster: Any) -> None:
    """End the node without the head as a power failure does."""
    (node,) = cluster.worker_nodes
    cluster.remove_node(node, allow_graceful=False)
