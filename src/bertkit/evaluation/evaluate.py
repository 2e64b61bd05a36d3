"""Fine-tuned models on labelled examples: one evaluated with a report, two compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bertkit.contracts import Example
from bertkit.errors import BertkitError, count_of, data_error, usage_error
from bertkit.evaluation.baselines import FoundBaselines, find_baselines, has_dev_of_training
from bertkit.evaluation.compare import Comparison, compare_predictions, require_comparable
from bertkit.evaluation.page import render_page
from bertkit.evaluation.report import Evaluation, evaluate_predictions
from bertkit.evaluation.training_facts import read_training_facts
from bertkit.finetuning.baselines import verdict
from bertkit.finetuning.cautions import caution_beside_interval, list_cautions
from bertkit.finetuning.results import read_finetuning_record, read_finished_run
from bertkit.formats.cells import to_json
from bertkit.formats.memory_tables import describe_table
from bertkit.formats.splits import tables_of
from bertkit.inference.pipeline import Pipeline, task_for
from bertkit.inference.prediction_files import INPUT_PREFIX
from bertkit.machine.device import device_record
from bertkit.report.progress import Progress
from bertkit.runs import environment, find_named_folder
from bertkit.scores import is_defined
from bertkit.storage.atomic import explain_writing, write_json, write_text
from bertkit.storage.checksums import fingerprint_of
from bertkit.task_files.files import check_split
from bertkit.task_types import FileTask, TextTask
from bertkit.task_types.held_out import describe_unlabelled
from bertkit.user_tables.input_columns import reads_tables

REPORT_FILES = ("report.html", "report.json")


@dataclass(frozen=True, kw_only=True)
class LabelledSplit:
    """The labelled examples of a split of a task, or of ``file``, which was named in place of the task's own."""

    task: FileTask
    split: str
    examples: Sequence[Example]
    file: Path | None = None

    @property
    def source(self) -> str:
        """For reports: ``glue:sst2``, ``files:reviews.csv``, or the file or table that was named."""
        return self.task.name if self.file is None else describe_table(self.file)

    @cached_property
    def hashes(self) -> list[str]:
        """The SHA-256 of each table of the split."""
        return [str(each["sha256"]) for each in self.task.files.fingerprints(self.task.name, self.split)]

    @property
    def name(self) -> str:
        """For messages: ``glue:sst2 dev``."""
        return f"{self.source} {self.split}"


def read_split(task: FileTask, data: Path | None, split: str) -> LabelledSplit:
    """The labelled examples of a split in the task's own files, in the folder ``data``, or in the file ``data``."""
    if data is not None and not data.exists():
        raise usage_error(f"no file or folder at {data}.")
    file = data if data is not None and (data.is_file() or not task.files.home) else None
    if file is not None:
        check_split(task.name, split, {"train": None, "dev": None, "test": None, **task.files.splits})
        task = replace(task.with_files(**{split: tables_of(file, split)}), heldout=0.0)  # all of it is the split
        _refuse_predictions(task, split)
    elif data is not None:
        task = task.at(data)
    if task.heldout:  # dev is a part of train
        check_split(task.name, split, {**task.files.splits, "dev": None})
    examples = [example for example in task.examples(split) if example.label is not None]
    if not examples:
        source = f"row of {file}" if file is not None else f"example of {task.name} {split}"
        raise data_error(f"no {source} has a label; there is nothing to score.")
    return LabelledSplit(task=task, split=split, examples=examples, file=file)


def _refuse_predictions(task: FileTask, split: str) -> None:
    """Raise a data error for predictions: every one of them would be right, if they are of the same model."""
    files = task.files.splits[split]
    label = files.columns.label
    for name in files.files if reads_tables(task) and label else ():
        if (gold := f"{INPUT_PREFIX}{label}") in task.files.table(Path(name), files.form):
            raise data_error(
                f"{name} is a file of predictions: its column {label} has what a model said, and {gold} the labels. "
                "Evaluate on the file that was predicted."
            )


def predict_split(model: Pipeline, labelled: LabelledSplit, progress: Progress) -> list[Any]:
    """The predictions of ``model`` in order, with its own thresholds; a task without null answers always has a span."""
    progress.start(f"evaluating {labelled.name}", len(labelled.examples), "example")
    predictions = []
    pair = isinstance(labelled.task, TextTask) and labelled.task.pair
    for prediction in model.stream(labelled.examples, task=task_for(model, pair=pair)):
        predictions.append(labelled.task.reconsider(prediction))
        progress.advance(len(predictions))
    progress.finish()
    return predictions


def evaluate_model(
    model: Pipeline, labelled: LabelledSplit, output: Path | None, progress: Progress, *, baseline: bool = True
) -> Evaluation:
    """Predict, score, and compare with the baselines, unless ``baseline`` is False.

    ``report.html`` and ``report.json`` are written to the folder ``output``. Without ``output`` the folder is
    ``evaluation-dev`` or the like in the run folder of the model. An ensemble, a model outside of a run folder, and a
    run folder of others without the permission to write have no such place: then nothing is written, and a message says
    so.
    """
    predictions = predict_split(model, labelled, progress)
    task, split = labelled.task, labelled.split
    evaluation = evaluate_predictions(task, split, labelled.examples, predictions, notes=_notes(model, labelled))
    evaluation = replace(evaluation, task=labelled.source)
    evaluation = _judge(evaluation, model, labelled, predictions, baseline=baseline)
    if output is not None:
        _write_report(evaluation, model, output, progress)
    elif (own := _default_output(model, labelled)) is not None:
        try:
            _write_report(evaluation, model, own, progress)
        except BertkitError as error:  # the scores are known, and the user named no folder
            progress.say(f"no report is written: {str(error).removesuffix('.')}; -o FOLDER writes one there")
    else:
        owner = "an ensemble" if len(model.folders) > 1 else f"{model.folder}, which is not in a run folder"
        progress.say(f"no report is written for {owner}: -o FOLDER writes one there")
    return evaluation


def _write_report(evaluation: Evaluation, model: Pipeline, output: Path, progress: Progress) -> None:
    with explain_writing(output):
        output.mkdir(parents=True, exist_ok=True)
    facts = read_training_facts(model.folder) if len(model.folders) == 1 else None
    date = time.strftime("%Y-%m-%d %H:%M")
    page = render_page(evaluation, model=_display_name(model), training=facts, date=date)
    write_text(output / "report.html", page)
    how = {"command": sys.argv, "device": device_record(), "environment": environment()}
    record = to_json({**evaluation.to_dict(), **how})  # texts may end in half a character
    write_json(output / "report.json", record)
    progress.say(f"the whole report: {output / 'report.html'}")


def compare_models(first: Pipeline, second: Pipeline, labelled: LabelledSplit, progress: Progress) -> Comparison:
    """Compare two models on the same examples, which are read as the task of ``first`` reads them."""
    names = (_display_name(first), _display_name(second))
    require_comparable(first.task, second.task, names)
    predictions = [predict_split(model, labelled, progress) for model in (first, second)]
    for model, name in zip((first, second), names, strict=True):
        for caution in caution_about_training_data(model, labelled):
            progress.say(f"{name}: {caution}")
    one, other = predictions
    return compare_predictions(labelled.task, labelled.split, labelled.examples, one, other, names)


def _judge(
    evaluation: Evaluation, model: Pipeline, labelled: LabelledSplit, predictions: Sequence[Any], *, baseline: bool
) -> Evaluation:
    """The evaluation with its baselines, the verdict, and the reasons to distrust the scores."""
    task, examples = labelled.task, labelled.examples
    found = FoundBaselines([])
    if baseline:
        found = find_baselines(model.folder, model.task, task, labelled.split, examples)
    run = read_finished_run(model.folder)
    score = evaluation.scores[task.metric]
    seen = caution_about_training_data(model, labelled)
    judged = verdict(task.metric, evaluation[task.metric], found.baselines) or found.why_none
    return replace(
        evaluation,
        precision=model.precision,
        baselines=list(found.baselines),
        verdict="" if seen and labelled.file is not None else judged,  # the baselines have read these examples, too
        warnings=[
            *list_cautions(
                task,
                [each.label for each in examples],
                [each.label for each in predictions] if task.spells_answers else [],
                evaluation[task.metric],
                trained=model.task,
                seeds=run.seeds if run else (),
                split=labelled.split,
                is_training_dev=_is_training_dev(model, labelled),
            ),
            *caution_beside_interval(len(examples), labelled.split, has_interval=is_defined(score.low)),
            *_caution_about_dev_limit(model, labelled),
            *(seen or found.shared),
        ],
    )


def _is_training_dev(model: Pipeline, labelled: LabelledSplit) -> bool:
    """Whether the examples are those of dev that the training of the model was evaluated on."""
    return labelled.file is None and labelled.split == "dev" and labelled.task.name == model.task.name


def _caution_about_dev_limit(model: Pipeline, labelled: LabelledSplit) -> list[str]:
    """A sentence if the training evaluated a part of these examples, which its scores are of."""
    record, total = read_finetuning_record(model.folder), len(labelled.examples)
    if not record or not _is_training_dev(model, labelled) or not has_dev_of_training(labelled.task, record):
        return []
    limit = record["run"].get("dev_limit")
    if limit is None or limit >= total:
        return []
    return [f"the scores of the fine-tuning are those of the first {limit:,} of these {count_of(total, 'example')}"]


def caution_about_training_data(model: Pipeline, labelled: LabelledSplit) -> list[str]:
    """Examples that the model, or one of an ensemble, was trained on or may have been, by the SHA-256 of its files."""
    return list(dict.fromkeys(each for folder in model.folders for each in _caution_about_training(folder, labelled)))


def _caution_about_training(model: Path, labelled: LabelledSplit) -> list[str]:
    record = read_finetuning_record(model)
    trained = record.get("data", {}).get("train", [])
    task, file = labelled.task, labelled.file
    if not trained:
        return []
    if file is not None:
        known = {each["sha256"] for each in trained}.intersection(labelled.hashes)
        return [f"{file.name} was read in the training: the score says nothing about new texts"] if known else []
    if labelled.split != "dev" or has_dev_of_training(task, record):
        return []
    if not task.heldout:
        is_same_task = task.name == record["run"]["task"]["name"] and "dev" in record["data"]
        changed = "the dev file is not, or no longer, that of the training, whose scores are of other examples"
        return [changed] if is_same_task else []
    return [
        "dev is held out from a file that is not, or no longer, that of the training: the model may have been trained "
        "on some of its examples"
    ]


def _default_output(model: Pipeline, labelled: LabelledSplit) -> Path | None:
    run = model.folder.parent
    if len(model.folders) > 1 or not (run / "run.json").exists():
        return None
    if (file := labelled.file) is not None:
        # Files of two folders may have one name.
        return run / f"evaluation-{labelled.split}-{file.stem}-{fingerprint_of([], *labelled.hashes)[:8]}"
    other = "" if labelled.task.name == model.task.name else f"-{labelled.task.name.replace(':', '-')}"
    return run / f"evaluation-{labelled.split}{other}"


def _display_name(model: Pipeline) -> str:
    return " + ".join(str(find_named_folder(folder)) for folder in model.folders)


def _notes(model: Pipeline, labelled: LabelledSplit) -> list[str]:
    """How many rows were left out, and the task's notes on its files, which may be missing on this machine."""
    task, split = labelled.task, labelled.split
    unlabelled = sum(example.label is None for example in task.reader.rows(split)) if split in task.files.splits else 0
    notes = describe_unlabelled(split, unlabelled)
    limit = read_finetuning_record(model.folder).get("run", {}).get("limit")
    try:
        return list(dict.fromkeys([*notes, *task.reader.notes(limit)]))
    except BertkitError as error:
        return [*notes, f"train and dev were not checked: {error}"]
