"""The verbs for published benchmarks: glue table, glue submit, squad score."""

from __future__ import annotations

import bertkit
from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import count_of
from bertkit.options.evaluation import GlueSubmitOptions, GlueTableOptions, SquadScoreOptions

_SHOWN_IDS = 20
"""Ids in a message; in Python, ``bertkit.squad_score`` returns all."""


def glue_table(options: GlueTableOptions, *, json: bool) -> None:
    """Show the scores of runs on GLUE's tasks."""
    table = bertkit.glue_table(**vars(options))
    if json:
        show_json(table)
        return
    rows = [
        (each.column, each.score, each.best, each.mean, "" if each.sd is None else each.sd, each.run)
        for each in table.scores
    ]
    averages = [] if table.best is None else [("average", "", table.best, table.mean, "", "")]
    show_table(("task", "score", "best seed", "mean", "sd", "run"), [*rows, *averages])
    if table.missing:
        show_lines([f"no average without {', '.join(table.missing)}"])
    part = [f"{each.column} (the first {each.dev_limit:,})" for each in table.scores if each.dev_limit is not None]
    if part:
        show_lines([f"not of all dev examples, and so no scores of GLUE: {', '.join(part)}"])


def glue_submit(options: GlueSubmitOptions, *, json: bool) -> None:
    """Write the files of a submission, and show which."""
    submission = bertkit.glue_submit(**vars(options))
    if json:
        show_json(submission)
        return
    show_table(("file", "rows"), submission.rows.items())
    show_lines([f"no {file}: {reason}" for file, reason in submission.missing.items()])


def squad_score(options: SquadScoreOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Show the official scores of a file of predictions."""
    result = bertkit.squad_score(**vars(options))
    show_json(result.scores) if json else show_table(("score", "value"), result.scores.items())
    for ids, noun, problem in (
        (result.missing, "question", "without a prediction, counted as wrong"),
        (result.unknown, "prediction", "of no question, ignored"),
        (result.without_odds, "question", "without null odds, which are taken as 0"),
    ):
        if ids:
            more = f" and {len(ids) - _SHOWN_IDS:,} more" if len(ids) > _SHOWN_IDS else ""
            verbosity.say(f"{count_of(len(ids), noun)} {problem}: {', '.join(ids[:_SHOWN_IDS])}{more}")
