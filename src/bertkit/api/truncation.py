"""The message about examples that are longer than a model reads."""

from __future__ import annotations

from bertkit.errors import count_of
from bertkit.inference.pipeline import Pipeline
from bertkit.report.progress import Progress
from bertkit.task_types import describe_truncation


def report_truncated(model: Pipeline, bar: Progress) -> None:
    """Say how many examples were truncated, if any were, and how to avoid it."""
    if model.num_truncated:
        bar.finish()
        folder, task = model.models[0], model.task
        said = f"{count_of(model.num_truncated, 'example')} {describe_truncation(task, model.num_truncated)}"
        if "task" in folder.metadata:  # of another library it is not known how it was trained
            advice = task.advise_on_truncation(folder.positions)
            said += f", as in training. {advice} in its fine-tuning." if advice else ", as in training"
        bar.say(said)
