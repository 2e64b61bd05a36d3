"""Convert ``metrics.jsonl`` of a run to TensorBoard's format, also while the run is still writing it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bertkit.errors import usage_error
from bertkit.optional import require
from bertkit.storage.checksums import read_record
from bertkit.storage.json_log import parse_record

_SECONDS_BETWEEN_READS = 2.0


def replay(run: Path, *, follow: bool = False) -> int:
    """Write the metrics of a run folder to ``run/tensorboard``, replacing what is there; return the number of records.

    With ``follow``, wait for new records until the run has ended.
    """
    metrics = run / "metrics.jsonl"
    if not metrics.is_file():
        raise usage_error(f"{run} has no metrics.jsonl; name the folder of a run.")
    tensorboard = require("torch.utils.tensorboard", extra="track", purpose="tracking", library="TensorBoard")
    while True:
        try:
            return _write_events(tensorboard, run, follow)
        except _LogReplacedError:  # by a resume, without the steps that it repeats
            pass


class _LogReplacedError(Exception):
    """The file of the log that was followed is another one now."""


def _write_events(tensorboard: Any, run: Path, follow: bool) -> int:
    output = run / "tensorboard"
    shutil.rmtree(output, ignore_errors=True)
    count = 0
    with tensorboard.SummaryWriter(str(output)) as writer:
        for record in _records(run / "metrics.jsonl", run / "run.json", follow):
            for tag, value in _scalars(record):
                writer.add_scalar(tag, value, record["step"])
            writer.flush()
            count += 1
    return count


def _records(metrics: Path, run_record: Path, follow: bool) -> Iterator[Mapping[str, object]]:
    """The records of intact lines. Whether the run has ended is read before the lines, so that none is missed."""
    with metrics.open("rb") as file:
        line = b""
        while True:
            ended = not follow or read_record(run_record).get("ended") is not None
            for part in file:
                line += part
                if part.endswith(b"\n"):
                    record = parse_record(line)
                    if record is not None:
                        yield record
                    line = b""
            if metrics.stat().st_ino != os.fstat(file.fileno()).st_ino:
                raise _LogReplacedError
            if ended:
                return
            time.sleep(_SECONDS_BETWEEN_READS)


def _scalars(record: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """Tags such as ``train/loss`` and their values; every seed of a fine-tuning has its own curve."""
    kind, seed = record["kind"], record.get("seed")
    for name, value in record.items():
        if name not in ("kind", "step", "seed") and isinstance(value, int | float):
            yield f"{kind}/{name}" if seed is None else f"{kind}/{name}/seed {seed}", float(value)
