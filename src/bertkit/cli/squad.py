"""The verb over files of SQuAD: squad score."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bertkit.cli.output import show_json, show_table
from bertkit.cli.verbosity import Verbosity


def squad_score(
    questions: Path,
    predictions: Path,
    /,
    *,
    null_odds: Path | None = None,
    rules: Literal["v1", "v2", "korquad"] | None = None,
    json: bool = False,
    talk: Verbosity | None = None,
) -> None:
    """Predictions of any program, scored as the official ones do: bertkit squad score dev-v2.0.json predictions.json

    Parameters
    ----------
    questions:
        File in SQuAD's format, with gold answers.
    predictions:
        JSON object of id -> answer.
    null_odds:
        JSON object of id -> what speaks for no answer; above 1 there is none, and the best threshold is shown too.
    rules:
        Whose arithmetic. [default: v2 if some question has no answer, else v1]
    json:
        Show the scores as JSON, as the official programs do.
    """
    from bertkit import api

    found = api.squad_score(questions, predictions, null_odds=null_odds, rules=rules)
    show_json(found.scores) if json else show_table(("score", "value"), found.scores.items())
    talk = talk or Verbosity()
    if found.missing:
        talk.say(f"{found.missing:,} questions have no prediction: they count as wrong")
    if found.unknown:
        talk.say(f"{found.unknown:,} predictions belong to no question: they count nowhere")
