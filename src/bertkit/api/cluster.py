"""A verb with ``--engine ray``: its independent runs are divided among the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields

from bertkit.errors import BertkitError
from bertkit.options.job import Options
from bertkit.storage.ray_cluster import call_everywhere


def run_on_cluster(verb: Callable[..., object], options: Options) -> None:
    """Run ``verb`` with ``options`` in one process per GPU or core of the cluster, until all have ended.

    They divide the runs as processes of one machine do, by locks in the output folder, which all nodes must see. If a
    node dies, its runs are continued by others.
    """
    given = {each.name: getattr(options, each.name) for each in fields(options)}
    given |= {"engine": "local", "progress": "quiet"}
    for error in call_everywhere(_ReturnError(verb), given):
        if error is not None:
            raise error


class _ReturnError:
    """Calls a verb and returns its error, if it has one: results stay in the output folder."""

    def __init__(self, verb: Callable[..., object]) -> None:
        self._verb = verb

    def __call__(self, options: Mapping[str, object]) -> BertkitError | None:
        try:
            self._verb(**options)
        except BertkitError as error:
            return error
        return None
