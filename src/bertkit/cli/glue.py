"""The verbs over several runs of GLUE's tasks: glue table, glue submit."""

from __future__ import annotations

from pathlib import Path

from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity


def glue_table(runs: list[Path], /, *, json: bool = False) -> None:
    """The dev scores of fine-tunings on GLUE, one run a task, with the paper's average.

    Parameters
    ----------
    runs:
        Run folders.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    table = api.glue_table(runs)
    if json:
        show_json(table)
        return
    rows = [(each.column, each.score, each.best, each.mean, each.sd or "", each.run) for each in table.scores]
    averages = [] if table.best is None else [("average", "", table.best, table.mean, "", "")]
    show_table(("task", "score", "best seed", "mean", "sd", "run"), [*rows, *averages])
    if table.missing:
        show_lines([f"no average without {', '.join(table.missing)}"])


def glue_submit(
    runs: list[Path], /, *, output: Path, data: Path | None = None, json: bool = False, talk: Verbosity | None = None
) -> None:
    """The test predictions of fine-tunings on GLUE as the files that GLUE's server marks.

    Parameters
    ----------
    runs:
        Run folders, one a task; that of glue:mnli answers the diagnostic set too.
    output:
        Folder for CoLA.tsv, SST-2.tsv and the others.
    data:
        Folder that holds CoLA, SST-2 and the others. [default: the files the runs were trained with]
    json:
        Show the result as JSON.
    """
    from bertkit import api

    talk = talk or Verbosity()
    submission = api.glue_submit(runs, output=output, data=data, progress=talk.mode)
    if json:
        show_json(submission)
        return
    show_table(("file", "rows"), submission.rows.items())
    show_lines([f"no {file}: {reason}" for file, reason in submission.missing.items()])
