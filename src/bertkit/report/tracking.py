"""The metrics of a run for TensorBoard. ``metrics.jsonl`` is the truth; this replays it, while it grows if wanted."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertkit.errors import usage_error
from bertkit.optional import require

_SECONDS_BETWEEN_LOOKS = 2.0


def replay(run: Path, *, follow: bool = False) -> int:
    """Write the metrics of a run folder to ``run/tensorboard`` anew and return how many records there were.

    With ``follow``, go on with new records until the run has ended.
    """
    metrics = run / "metrics.jsonl"
    if not metrics.is_file():
        raise usage_error(f"{run} has no metrics.jsonl; name the folder of a run.")
    tensorboard = require("torch.utils.tensorboard", extra="track", purpose="tracking", library="TensorBoard")
    output = run / "tensorboard"
    shutil.rmtree(output, ignore_errors=True)
    count = 0
    with tensorboard.SummaryWriter(str(output)) as writer:
        for record in _records(metrics, run / "run.json", follow):
            for tag, value in _scalars(record):
                writer.add_scalar(tag, value, record["step"])
            writer.flush()
            count += 1
    return count


def _records(metrics: Path, about: Path, follow: bool) -> Iterator[dict[str, Any]]:
    """Whole lines as they come; the look at ``about`` is before the reading, so that nothing is missed at the end."""
    with metrics.open(encoding="utf-8") as file:
        torn = ""
        while True:
            ended = not follow or json.loads(about.read_text(encoding="utf-8")).get("ended") is not None
            for line in file:
                torn += line
                if line.endswith("\n"):
                    yield json.loads(torn)
                    torn = ""
            if ended:
                return
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _scalars(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """``train/loss`` and the like; the restarts of a fine-tuning have a curve each."""
    kind, seed = record["kind"], record.get("seed")
    for name, value in record.items():
        if name not in ("kind", "step", "seed") and isinstance(value, int | float):
            yield f"{kind}/{name}" if seed is None else f"{kind}/{name}/seed {seed}", float(value)
