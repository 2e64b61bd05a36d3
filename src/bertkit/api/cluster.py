"""A verb with ``--engine ray``: its independent runs are divided among the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial

from bertkit.options.job import Options
from bertkit.storage.ray_cluster import call_everywhere


def run_on_cluster(verb: Callable[..., object], options: Options) -> None:
    """Run ``verb`` with ``options`` in one process per GPU or core of the cluster, until all have ended.

    They divide the runs as processes of one machine do, by locks in the output folder, which all nodes must see. If a
    node dies, its runs are continued by others.
    """
    given = {each.name: getattr(options, each.name) for each in fields(options)}
    given |= {"engine": "local", "progress": "quiet"}
    for _ in call_everywhere(partial(_call, verb), given):
        pass


def _call(verb: Callable[..., object], options: Mapping[str, object]) -> None:
    """Call ``verb``, and return nothing: its results are in the output folder."""
    verb(**options)
