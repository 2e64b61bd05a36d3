"""The verb over the paper's tables: reproduce."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of ``reproduce``."""

    output: Path | None = None
    """Folder for every model, run, table and picture."""
    data: Path | None = None
    """Folder with glue, squad, swag, conll2003 and corpora. [default: BERTKIT_DATA]"""
    scale: str = "tiny"
    """smoke (minutes; proves that it runs), tiny (a day of two cores) or paper (the paper's own recipe)."""
    corpus: Sequence[Path] = ()
    """Text files to pre-train on. [default: enwiki* and books/* in DATA/corpora]"""
    vectors: Path | None = None
    """Word vectors in GloVe's text format. [default: learned on the corpus]"""
    set: Sequence[str] = ()
    """Fields of the scale, such as steps=2000 limit=1000 seeds=2."""
    plan: bool = False
    """Show what would be trained and what it would cost; train nothing."""


def reproduce(
    table: str, /, *, options: ReproduceOptions | None = None, json: bool = False, talk: Verbosity | None = None
) -> None:
    """A table of BERT's paper again, all systems on one corpus: bertkit reproduce table5 --scale tiny -o OUT.

    The same command goes on after an interruption; started several times it divides the work among the processes.

    Parameters
    ----------
    table:
        table1 to table8, figure5, budget (each rival with as many parameters and as many FLOP), or all.
    json:
        Show the result as JSON.
    """
    from bertkit import api
    from bertkit.reproduction.reproduce import ReproductionPlan
    from bertkit.training.distributed import rank
    from bertkit.training.interrupts import Interrupted

    options, talk = options or ReproduceOptions(), talk or Verbosity()
    command = shlex.join(["bertkit", *sys.argv[1:]])
    try:
        found = api.reproduce(table, **vars(options), command=command, progress=talk.mode)
    except Interrupted as stop:
        stop.args = (f"stopped; what is finished is kept. Go on with the same command: {command}",)
        raise
    if rank() > 0:
        return
    if json:
        show_json(found)
    elif isinstance(found, ReproductionPlan):
        show_lines(found.lines())
    else:
        for each in found.tables:
            show_lines([each.heading])
            show_table(("", *each.columns), each.cells())
            show_lines([""])
        show_lines([f"{found.page}: all of it, with costs, notes and pictures; a cell is ours / the paper's"])
