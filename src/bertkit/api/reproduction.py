"""The verb that reproduces the tables of the BERT paper."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from bertkit.api.cluster import run_on_cluster
from bertkit.api.verb import verb
from bertkit.config.settings import parse_settings
from bertkit.errors import usage_error
from bertkit.options.command import spell_command
from bertkit.options.reproduction import ReproduceOptions
from bertkit.report.progress import Progress
from bertkit.reproduction.estimate import ReproductionEstimate
from bertkit.reproduction.reproduce import Reproduction, estimate_reproduction
from bertkit.reproduction.reproduce import reproduce as run_reproduction
from bertkit.training.distributed import rank


@verb(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> Reproduction | ReproductionEstimate:
    """The ``tables`` and the ``page`` that shows them; with ``plan``, what would be trained and what it would cost."""
    # Absolute paths: the records of the runs have them, and the same command may continue in another folder.
    data = _find_data(options).absolute()
    corpus = [Path(path).absolute() for path in options.corpus]
    vectors = Path(options.vectors).absolute() if options.vectors else None
    settings = parse_settings(options.set)
    if options.plan:
        return estimate_reproduction(
            options.table, data=data, scale=options.scale, corpus=corpus, vectors=vectors, settings=settings
        )
    if options.output is None:
        raise usage_error("reproduce needs -o OUT, or --plan.")
    if options.engine == "ray":
        run_on_cluster(reproduce, replace(options, data=data))
    with Progress(options.progress if rank() == 0 else "quiet") as bar:
        return run_reproduction(
            options.table,
            data=data,
            output=Path(options.output).absolute(),
            scale=options.scale,
            corpus=corpus,
            vectors=vectors,
            settings=settings,
            command=spell_command("reproduce", options),
            progress=bar,
        )


def _find_data(options: ReproduceOptions) -> Path:
    """The folder with the files of the tasks."""
    folder = options.data or os.environ.get("BERTKIT_DATA")
    if not folder:
        raise usage_error("the tables need their files: give --data DIR, or set BERTKIT_DATA.")
    if not Path(folder).is_dir():
        raise usage_error(f"no folder at {folder}: --data names one with glue, squad, swag, conll2003 and corpora.")
    return Path(folder)
