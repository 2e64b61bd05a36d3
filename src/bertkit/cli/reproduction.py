"""The verb that reproduces the tables of the BERT paper."""

from __future__ import annotations

import bertkit
from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.options.reproduction import ReproduceOptions


def reproduce(options: ReproduceOptions, *, json: bool) -> None:
    """Show the tables; a cell is ours / the paper's."""
    from bertkit.reproduction.estimate import ReproductionEstimate
    from bertkit.training.distributed import rank

    result = bertkit.reproduce(**vars(options))
    if rank() > 0:
        return
    if json:
        show_json(result)
    elif isinstance(result, ReproductionEstimate):
        show_lines(result.lines())
    else:
        for table in result.tables:
            show_lines([table.heading])
            show_table(("", *table.columns), table.text_rows())
            show_lines([""])
        show_lines([f"{result.page}: all of it, with costs, notes and plots; a cell is ours / the paper's"])
