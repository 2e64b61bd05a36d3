"""The message about examples that are longer than a model reads."""

from __future__ import annotations

from bertkit.errors import count_of, verb_of
from bertkit.inference.pipeline import Pipeline
from bertkit.report.progress import Progress


def report_truncated(model: Pipeline, bar: Progress) -> None:
    """Say how many examples were truncated, if any were, and how to avoid it."""
    if model.num_truncated:
        bar.finish()
        cut = f"{count_of(model.num_truncated, 'example')} {verb_of(model.num_truncated, 'was', 'were')} cut"
        if "task" in model.models[0].metadata:
            advice = f", as in training. {model.task.advise_on_truncation()} in its fine-tuning."
        else:  # of another library; how it was trained is not known
            advice = ""
        bar.say(f"{cut} to {model.task.max_length} tokens{advice}")
