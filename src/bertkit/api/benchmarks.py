"""The verbs for published benchmarks: GLUE's table and submission, SQuAD's official scores."""

from __future__ import annotations

from pathlib import Path

from bertkit.api.paths import optional_path
from bertkit.api.verb import verb
from bertkit.evaluation.glue import GlueSubmission, GlueTable, submit, tabulate
from bertkit.evaluation.squad import SquadScore, score_predictions
from bertkit.options.evaluation import GlueSubmitOptions, GlueTableOptions, SquadScoreOptions
from bertkit.report.progress import Progress
from bertkit.storage.outputs import check_output
from bertkit.tasks.glue import SUBMISSION


@verb(GlueTableOptions)
def glue_table(options: GlueTableOptions) -> GlueTable:
    """``.scores`` in the order of the paper, the averages ``.best`` and ``.mean``, and the ``.missing`` tasks."""
    return tabulate([Path(run) for run in options.runs])


@verb(GlueSubmitOptions)
def glue_submit(options: GlueSubmitOptions) -> GlueSubmission:
    """``.rows`` of each file that was written, and why the others are ``.missing``."""
    output = Path(options.output)
    for entry in SUBMISSION:
        check_output(output / entry.file, overwrite=options.overwrite)
    with Progress(options.progress) as bar:
        return submit([Path(run) for run in options.runs], output, bar, data=optional_path(options.data))


@verb(SquadScoreOptions)
def squad_score(options: SquadScoreOptions) -> SquadScore:
    """``.scores`` in per cent, and the ids of ``.missing`` and ``.unknown`` predictions."""
    return score_predictions(
        Path(options.questions),
        Path(options.predictions),
        null_odds=optional_path(options.null_odds),
        null_threshold=options.null_threshold,
        rules=options.rules,
    )
