"""The verbs for published benchmarks: GLUE's table and submission, SQuAD's official scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertkit.api.paths import AnyPath, existing
from bertkit.evaluation.glue import GlueSubmission, GlueTable, submit, tabulate
from bertkit.evaluation.squad import SquadScore, score_predictions
from bertkit.metrics.squad import Rules
from bertkit.report.progress import Mode, Progress


def glue_table(runs: Sequence[AnyPath]) -> GlueTable:
    """The dev scores of fine-tunings on GLUE, one run a task, with the paper's average."""
    return tabulate([Path(run) for run in runs])


def glue_submit(
    runs: Sequence[AnyPath], *, output: AnyPath, data: AnyPath | None = None, progress: Mode = "auto"
) -> GlueSubmission:
    """The test predictions of fine-tunings on GLUE as files of a submission in the folder ``output``."""
    with Progress(progress) as bar:
        return submit([Path(run) for run in runs], Path(output), bar, data=Path(data) if data else None)


def squad_score(
    questions: AnyPath, predictions: AnyPath, *, null_odds: AnyPath | None = None, rules: Rules | None = None
) -> SquadScore:
    """A file of predictions as the official program of SQuAD 1.1, 2.0 or KorQuAD scores it, in per cent."""
    paths = existing([questions, predictions, *([null_odds] if null_odds else [])])
    return score_predictions(paths[0], paths[1], null_odds=paths[2] if null_odds else None, rules=rules)
