"""The verbs that measure fine-tuned models: evaluate and compare."""

from __future__ import annotations

from pathlib import Path

import bertkit
from bertkit.cli.output import show_json, show_lines, show_parts, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import count_of
from bertkit.options.evaluation import CompareOptions, EvaluateOptions


def evaluate(options: EvaluateOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Show the scores of a model with their intervals."""
    evaluation = bertkit.evaluate(**vars(options))
    if json:
        show_json(evaluation.to_dict())
    else:
        rows = [(name, score.value, score.low, score.high) for name, score in evaluation.scores.items()]
        show_table(("score", "value", "from", "to"), rows)
        show_lines(
            [
                f"{count_of(evaluation.examples, 'example')}, computed in {evaluation.precision}; 95 % intervals from "
                f"{evaluation.resamples:,} resamples"
            ]
        )
        show_parts(evaluation.parts)
        show_lines([line for line in (evaluation.verdict, *evaluation.warnings) if line])
    from bertkit.inference.prediction_formats import WRITTEN_FORMATS

    suffix = _suffix_of_data(Path(options.run))
    output = suffix if suffix in WRITTEN_FORMATS else ".jsonl"
    verbosity.suggest("bertkit", "predict", options.run, f"NEW{suffix}", "-o", f"predictions{output}")


def _suffix_of_data(run: Path) -> str:
    """The suffix of the files of a fine-tuning; ``.csv`` if they are not on record."""
    from bertkit.runs import read_run
    from bertkit.storage.suffixes import suffix_of

    record = read_run(run) if (run / "run.json").exists() else {}
    files = [file["file"] for split in record.get("data", {}).values() for file in split]
    return suffix_of(Path(files[0])) if files else ".csv"


def _spell_p(p: float) -> str:
    return f"= {p:.4f}" if p >= 0.0001 else "< 0.0001"


def compare(options: CompareOptions, *, json: bool) -> None:
    """Show the scores of two models, the examples on which they differ, and whether the difference is significant."""
    comparison = bertkit.compare(**vars(options))
    if json:
        show_json(comparison)
        return
    rows = [(name, each.first, each.second, each.difference, each.p) for name, each in comparison.scores.items()]
    show_table(("score", "first", "second", "second - first", "p"), rows)
    if mcnemar := comparison.mcnemar:
        only = f"only first {mcnemar.only_first:,}, only second {mcnemar.only_second:,}"
        show_lines([f"right: {only}; McNemar's exact p {_spell_p(mcnemar.p)}"])
    if comparison.disagreements:
        shown = [(each.id, each.gold, each.first, each.second, each.text[:60]) for each in comparison.disagreements]
        show_table(("id", "gold", "first", "second", "text"), shown)
    show_lines([comparison.sentence()])
