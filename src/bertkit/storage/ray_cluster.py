"""Calls of a function on a Ray cluster, whose nodes have bertkit installed and see the same files.

A call is a task without state, so Ray repeats it on another node if its node dies. Ray's client library is the extra
``bertkit[ray]``.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from bertkit.errors import BertkitError, usage_error
from bertkit.optional import require
from bertkit.storage.returned_errors import ReturnErrors, raise_returned

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_RETRIES = 5
"""How often a call may lose its node. More losses have another cause, such as calls that fill the memory."""

_SECONDS_TO_ANSWER = 10

_CURRENT_CLUSTER = Path("/tmp/ray/ray_current_cluster")
"""Where ``ray start`` writes the address of its cluster. It stays there if that was killed."""

_CALLS_PER_CORE = 2
"""One that is running and one that waits, so that no core is idle while its result is fetched."""


def map_on_cluster(
    function: Callable[[Argument], Result],
    arguments: Iterable[Argument],
    *,
    calls: int | None = None,
    gpus: int = 0,
) -> Iterator[tuple[Argument, Result]]:
    """``arguments`` with their results, in order; at most ``calls`` of them are in memory at a time.

    ``function`` must be picklable, and is kept by the processes of the cluster from call to call. Without ``calls``
    there are two per core of the cluster. Each takes a core and this many ``gpus``.

    Raises
    ------
    BertkitError
        If there is no cluster, or if it fails; and that of ``function``.
    """
    ray = connect()
    cores = int(ray.cluster_resources().get("CPU", 1))
    remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=_RETRIES)(_call)
    # Files may be named by paths that are relative to the folder of this process.
    pickled = ray.put(pickle.dumps((str(Path.cwd()), ReturnErrors(function))))  # sent once, not with every argument
    waiting: deque[tuple[Argument, Any]] = deque()
    try:
        for argument in arguments:
            if len(waiting) == (calls or _CALLS_PER_CORE * cores):
                done, result = waiting.popleft()
                yield done, raise_returned(ray.get(result))
            waiting.append((argument, remote.remote(pickled, argument)))
        while waiting:
            done, result = waiting.popleft()
            yield done, raise_returned(ray.get(result))
    except ray.exceptions.RayError as error:
        # A task's own exception has the traceback of the remote process, which only the last line sums up.
        reason = str(error).strip().rpartition("\n")[2]
        raise BertkitError(
            f"the Ray cluster failed: {reason}. What is finished is kept; repeat the command."
        ) from error
    finally:
        for _, result in waiting:
            ray.cancel(result, force=True)


def call_everywhere(function: Callable[[Argument], Result], argument: Argument) -> Iterator[Result]:
    """The results of one call per GPU of the cluster, or per core if it has no GPU, all at the same time."""
    resources = connect().cluster_resources()
    gpus = int(resources.get("GPU", 0))
    calls = gpus or int(resources.get("CPU", 1))
    for _, result in map_on_cluster(function, [argument] * calls, calls=calls, gpus=min(gpus, 1)):
        yield result


def connect() -> ModuleType:
    """The library, connected to the cluster of ``RAY_ADDRESS`` or of this machine.

    Raises a usage error if the library or the cluster is missing.
    """
    ray = require("ray", extra="ray", purpose="--engine ray")
    if not ray.is_initialized():
        address = _find_address()
        try:
            if address != "auto":
                _require_answer(address)
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except (OSError, RuntimeError, ValueError) as error:
            where = "on this machine" if address == "auto" else f"at {address}"
            raise usage_error(
                f"--engine ray: there is no Ray cluster {where}. Start one with: ray start --head, or set RAY_ADDRESS "
                "to that of a cluster."
            ) from error
    return ray


def _find_address() -> str:
    """The address of the cluster; ``auto`` where none is named, with which Ray looks for its processes."""
    address = os.environ.get("RAY_ADDRESS") or "auto"
    if address == "auto":
        with suppress(OSError):
            address = _CURRENT_CLUSTER.read_text().strip() or address
    return address


def _require_answer(address: str) -> None:
    """Raise OSError or ValueError if no program answers at ``host:port``; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host, int(port)), timeout=_SECONDS_TO_ANSWER).close()


def _call(function: bytes, argument: Any) -> Any:
    # Ray runs one task per core.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return _load(function)(argument)


@lru_cache(maxsize=1)
def _load(function: bytes) -> Callable[[Any], Any]:
    """The function, once per process: it may have loaded a tokenizer."""
    folder, loaded = pickle.loads(function)
    with suppress(OSError):
        os.chdir(folder)
    call: Callable[[Any], Any] = loaded
    return call
