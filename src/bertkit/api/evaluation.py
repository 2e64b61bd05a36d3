"""The verbs that measure fine-tuned models: evaluate and compare."""

from __future__ import annotations

from pathlib import Path

from bertkit.api.paths import optional_path
from bertkit.api.task_choice import find_task
from bertkit.api.truncation import report_truncated
from bertkit.api.verb import verb
from bertkit.errors import usage_error
from bertkit.evaluation.compare import Comparison
from bertkit.evaluation.evaluate import REPORT_FILES, LabelledSplit, compare_models, evaluate_model, read_split
from bertkit.evaluation.report import Evaluation
from bertkit.inference.pipeline import load
from bertkit.options.evaluation import CompareOptions, EvaluateOptions
from bertkit.report.progress import Progress
from bertkit.storage.outputs import open_output_folder
from bertkit.task_types import FileTask, same_answers
from bertkit.user_tables.input_columns import choose_columns, with_encoding


@verb(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> Evaluation:
    """A mapping of scores by name; ``.scores["accuracy"].low`` is the lower end of an interval.

    Also ``.verdict``, ``.baselines``, ``.warnings``, ``.classes``, ``.calibration``, ``.lengths``, ``.worst`` and
    ``.notes``.
    """
    if options.output is not None:
        open_output_folder(Path(options.output), REPORT_FILES, overwrite=options.overwrite)
    model = load(options.run, *options.ensemble, precision=options.precision)
    task = model.task if options.on is None else _with_same_labels(find_task(options.on), model.task)
    with Progress(options.progress) as bar:
        examples = _read_examples(task, options, bar)
        evaluation = evaluate_model(
            model, examples, optional_path(options.output), bar, baseline=not options.no_baseline
        )
        report_truncated(model, bar)
    return evaluation


@verb(CompareOptions)
def compare(options: CompareOptions) -> Comparison:
    """``.sentence()`` in words; ``.scores["accuracy"].difference`` and ``.p`` in numbers."""
    first, second = (load(run, precision=options.precision) for run in (options.first, options.second))
    with Progress(options.progress) as bar:
        examples = _read_examples(first.task, options, bar)
        return compare_models(first, second, examples, bar)


def _read_examples(task: FileTask, options: EvaluateOptions | CompareOptions, bar: Progress) -> LabelledSplit:
    """The labelled examples of a split of the task, or of a file with the named columns; others are guessed."""
    data = optional_path(options.data)
    if data is not None or options.encoding is not None:
        task = with_encoding(task, options.encoding)
    columns = {"text": options.text, "pair": options.pair, "label": options.label, "id": options.id}
    named = any(columns.values())
    has_header = all(each.form is None for each in task.files.splits.values())
    if data is not None and data.is_file() and (named or has_header):
        task, sentence = choose_columns(task, data, labelled=True, **columns)
        if sentence:
            bar.say(sentence)
    elif named:
        raise usage_error("--text, --pair, --label and --id are columns of a file: name it with --data FILE.")
    return read_split(task, data, options.split)


def _with_same_labels(task: FileTask, trained: FileTask) -> FileTask:
    """``task``, if a model for ``trained`` predicts its labels."""
    if not same_answers(task, trained):
        raise usage_error(f"a model for {trained.name} does not give the answers of {task.name}.")
    return task
