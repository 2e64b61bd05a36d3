"""The verb that makes the tables of BERT's paper again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertkit.api.paths import AnyPath, existing
from bertkit.config import parse_settings
from bertkit.errors import usage_error
from bertkit.report.progress import Mode, Progress
from bertkit.reproduction.reproduce import Reproduction, ReproductionPlan, plan_reproduction
from bertkit.reproduction.reproduce import reproduce as run_reproduction
from bertkit.training.distributed import rank


def reproduce(
    table: str,
    *,
    output: AnyPath | None = None,
    data: AnyPath | None = None,
    scale: str = "tiny",
    corpus: Sequence[AnyPath] = (),
    vectors: AnyPath | None = None,
    set: Sequence[str] = (),
    plan: bool = False,
    command: str = "",
    progress: Mode = "auto",
) -> Reproduction | ReproductionPlan:
    """Make a table of the paper, or ``all``, on the files below ``data`` (by default BERTKIT_DATA); or only ``plan``.

    ``set`` changes fields of the scale, such as ``steps=1000``. ``command`` is what the page says to type.
    """
    folder = data or os.environ.get("BERTKIT_DATA")
    if not folder:
        raise usage_error("the tables need their files: give --data DIR, or set BERTKIT_DATA.")
    if not Path(folder).is_dir():
        raise usage_error(f"no folder at {folder}: --data names one with glue, squad, swag, conll2003 and corpora.")
    asked: dict[str, Any] = {
        "data": Path(folder),
        "scale": scale,
        "corpus": existing(corpus) if corpus else [],
        "vectors": existing([vectors])[0] if vectors else None,
        "settings": parse_settings(set),
    }
    if plan:
        return plan_reproduction(table, **asked)
    if output is None:
        raise usage_error("reproduce needs -o OUT, or --plan.")
    with Progress(progress if rank() == 0 else "quiet") as bar:
        return run_reproduction(table, output=Path(output), command=command, progress=bar, **asked)
