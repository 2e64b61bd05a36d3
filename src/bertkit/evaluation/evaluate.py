"""A fine-tuned model put to labelled examples: what `evaluate` says of one, and `compare` of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.errors import BertkitError, data_error
from bertkit.evaluation.compare import Comparison, contrast, require_same_question
from bertkit.evaluation.page import write_page
from bertkit.evaluation.report import Evaluation, examine
from bertkit.inference.pipeline import Pipeline
from bertkit.report.progress import Progress
from bertkit.storage.atomic import explain_writing, write_file, write_json
from bertkit.task_types import FileTask
from bertkit.task_types.user_tables import tables_of


@dataclass(frozen=True, kw_only=True)
class Questions:
    """The labelled examples of a split of a task."""

    task: FileTask
    split: str
    examples: Sequence[Any]

    @property
    def name(self) -> str:
        """For complaints."""
        return f"{self.task.name} {self.split}"


def ask_about(task: FileTask, data: Path | None, split: str) -> Questions:
    """The examples of a split in the task's own files, in a folder, or in a file that stands for that split."""
    if data is not None and not data.exists():
        raise data_error(f"no file or folder at {data}.")
    if data is not None and (data.is_file() or not task.files.home):
        task = task.with_files(**{split: tables_of(data, split)})
    elif data is not None:
        task = task.at(data)
    examples = [example for example in task.examples(split) if example.label is not None]
    if not examples:
        raise data_error(f"no example of {task.name} {split} has a label; there is nothing to score.")
    return Questions(task=task, split=split, examples=examples)


def answer(model: Pipeline, questions: Questions, progress: Progress) -> list[Any]:
    """The model's answers, in order; ``questions`` may be those of another task that wants the same answers."""
    progress.start(f"evaluating {questions.name}", len(questions.examples), "example")
    predictions = []
    for prediction in model.stream(questions.examples):
        predictions.append(questions.task.reconsider(prediction))
        progress.advance(len(predictions))
    progress.finish()
    return predictions


def evaluate(model: Pipeline, questions: Questions, output: Path | None, progress: Progress) -> Evaluation:
    """Answer and look at the answers; ``output`` then holds ``report.html`` and ``report.json``.

    Without ``output`` they go to ``evaluation-dev`` and the like in the run folder; a model without a run has
    no place, nor have several.
    """
    predictions = answer(model, questions, progress)
    task, split = questions.task, questions.split
    evaluation = examine(task, split, questions.examples, predictions, notes=_notes(questions))
    output = output or _default_output(model, questions)
    if output is not None:
        with explain_writing(output):
            output.mkdir(parents=True, exist_ok=True)
        page = write_page(evaluation, model=_name(model))
        write_file(output / "report.html", lambda path: path.write_text(page, encoding="utf-8"))
        write_json(output / "report.json", evaluation.record())
        progress.say(f"the whole report: {output / 'report.html'}")
    return evaluation


def compare(first: Pipeline, second: Pipeline, data: Path | None, split: str, progress: Progress) -> Comparison:
    """Both models on the same examples, which are read as the task of ``first`` reads them."""
    names = (_name(first), _name(second))
    require_same_question(first.task, second.task, names)
    questions = ask_about(first.task, data, split)
    answers = [answer(model, questions, progress) for model in (first, second)]
    return contrast(questions.task, split, questions.examples, answers[0], answers[1], names)


def _default_output(model: Pipeline, questions: Questions) -> Path | None:
    run = model.folder.parent
    if len(model.folders) > 1 or not (run / "run.json").exists():
        return None
    other = "" if questions.task.name == model.task.name else f"-{questions.task.name.replace(':', '-')}"
    return run / f"evaluation-{questions.split}{other}"


def _name(model: Pipeline) -> str:
    return " + ".join(str(folder.parent if folder.name == "model" else folder) for folder in model.folders)


def _notes(questions: Questions) -> list[str]:
    """What was left out of the split, and what the task says of its files; those may have stayed on another machine."""
    task, split = questions.task, questions.split
    unlabelled = sum(example.label is None for example in task.rows(split)) if split in task.files.splits else 0
    own = [f"{unlabelled:,} rows of {split} have no label and are left out"] if unlabelled else []
    try:
        return list(dict.fromkeys([*own, *task.notes()]))
    except BertkitError as error:
        return [*own, f"train and dev were not looked at: {error}"]
