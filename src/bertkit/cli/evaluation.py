"""The verbs that measure fine-tuned models: evaluate and compare."""

from __future__ import annotations

from bertkit.cli.output import show_json, show_lines, show_parts, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.options.evaluation import CompareOptions, EvaluateOptions


def evaluate(options: EvaluateOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Show the scores of a model with their intervals."""
    from bertkit import api

    evaluation = api.evaluate(**vars(options))
    if json:
        show_json(evaluation.record())
    else:
        rows = [(name, score.value, score.low, score.high) for name, score in evaluation.scores.items()]
        show_table(("score", "value", "from", "to"), rows)
        show_lines([f"{evaluation.examples:,} examples; 95 % intervals from {evaluation.resamples:,} resamples"])
        show_parts(evaluation.parts)
        show_lines([line for line in (evaluation.verdict, *evaluation.warnings) if line])
    verbosity.suggest("bertkit", "predict", options.run, "INPUT", "-o", "OUTPUT")


def compare(options: CompareOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Show the scores of two models, the examples on which they differ, and whether the difference is significant."""
    from bertkit import api

    comparison = api.compare(**vars(options))
    if json:
        show_json(comparison)
        return
    rows = [(name, each.first, each.second, each.difference, each.p) for name, each in comparison.scores.items()]
    show_table(("score", "first", "second", "second - first", "p"), rows)
    if mcnemar := comparison.mcnemar:
        only = f"only first {mcnemar.only_first:,}, only second {mcnemar.only_second:,}"
        show_lines([f"right: {only}; McNemar's exact p = {mcnemar.p:.4f}"])
    if comparison.disagreements:
        shown = [(each.id, each.gold, each.first, each.second, each.text[:60]) for each in comparison.disagreements]
        show_table(("id", "gold", "first", "second", "text"), shown)
    show_lines([comparison.sentence()])
