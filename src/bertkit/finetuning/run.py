"""Fine-tuning from start to finish: the run folder, every seed, the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import READABLE_ELSEWHERE
from bertkit.config.records import to_plain
from bertkit.errors import usage_error
from bertkit.finetuning.baselines import scores_to_beat
from bertkit.finetuning.card import write_finetuning_card
from bertkit.finetuning.cautions import caution_about_size, list_cautions
from bertkit.finetuning.data import FinetuningData, check_lengths, load_data
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult, read_seed, summarize_seeds, write_results
from bertkit.finetuning.starting_point import trained_task
from bertkit.finetuning.train_seed import train_seed
from bertkit.finetuning.unfinished_seed import delete_unfinished
from bertkit.inference.conversion import explain_export, explain_unit
from bertkit.inference.predict import predict
from bertkit.machine.device import default_device, device_record
from bertkit.machine.interrupts import Interrupts
from bertkit.machine.precision import MEASURED, choose_precision, reason_for_record
from bertkit.report.plots import plot_confusion, plot_epochs
from bertkit.report.progress import Progress
from bertkit.runs import DONE, RunFolder, differing_settings, read_run
from bertkit.storage.checksums import fingerprint_of, sha256_of
from bertkit.task_types import FileTask


def finetune(
    run: FinetuneRun,
    progress: Progress,
    *,
    origins: Mapping[str, str] | None = None,
    model: ModelFolder | None = None,
) -> FinetuneResult:
    """Fine-tune ``run.model`` with every seed into ``run.output``; seeds that an earlier start finished are kept.

    ``origins`` say where each setting came from, for the record. ``model`` is the folder of ``run.model`` if it is
    open already. Raises Interrupted on Ctrl-C or SIGTERM; the same command then continues after the step that was
    its last.
    """
    model = model or ModelFolder.open(run.model)
    check_lengths(run, model)
    with RunFolder(run.output) as folder, Interrupts() as interrupts:
        for notice in folder.notices:
            progress.say(notice)
        discard_unused_record(folder)
        run, origins = fill_in_precision(run, origins or {}, folder)
        begin_run(folder, settings_record(run), run, origins=origins)
        return run_seeds(load_data(run, progress, model=model), folder, interrupts, progress)


def discard_unused_record(folder: RunFolder) -> None:
    """Delete the record of a fine-tuning that failed before its first step, such as with a wrong file."""
    if folder.record.exists() and not folder.metrics.exists() and read_run(folder.path)["kind"] == "finetune":
        folder.record.unlink()


def fill_in_precision(
    run: FinetuneRun, origins: Mapping[str, str], folder: RunFolder
) -> tuple[FinetuneRun, Mapping[str, str]]:
    """``run`` with a precision, and the origins of its settings.

    It is the one that the first start on ``folder`` measured, so that all seeds have the same.
    """
    if run.precision is not None:
        return run, origins
    if not folder.record.exists():
        return replace(run, precision=choose_precision(default_device())), {**origins, "precision": MEASURED}
    record = read_run(folder.path)
    prefix, settings = ("run.", record["run"]["run"]) if record["kind"] == "tune" else ("", record["run"])
    if record["origins"].get(f"{prefix}precision") != MEASURED:
        return run, origins
    return replace(run, precision=settings["precision"]), {**origins, "precision": MEASURED}


def settings_record(run: FinetuneRun) -> dict[str, object]:
    """The settings of ``run`` as plain JSON, for ``run.json``."""
    return {**to_plain(run), "task": run.task.record()}


def begin_run(
    folder: RunFolder,
    settings: Mapping[str, object],
    run: FinetuneRun,
    *,
    kind: str = "finetune",
    origins: Mapping[str, str] | None = None,
) -> None:
    """Write ``settings`` into the record of a new folder; one that has a record must have the same, on the same data.

    The models and the unlabelled texts that ``run`` names must have the same content, too: their paths are in the
    settings.
    """
    data, inputs = _fingerprints(run.task), _fingerprints_of_inputs(run)
    if not folder.record.exists():
        known = dict(origins or {})
        facts = {"data": data, "inputs": inputs, "device": device_record(), **reason_for_record(known)}
        folder.begin(settings, kind=kind, origins=known, **facts)
        return
    record = read_run(folder.path)
    if other := differing_settings(record["run"], settings):
        raise usage_error(
            f"{folder.path} holds another run (different: {', '.join(other)}). Choose another -o folder, or repeat its "
            "command."
        )
    if record["data"] != data:
        raise usage_error(f"the data files of {folder.path} have changed since it began. Choose another -o folder.")
    before = record.get("inputs", inputs)  # earlier versions did not write them
    for name, fingerprint in inputs.items():
        if before.get(name) != fingerprint:
            path = getattr(run, name)
            raise usage_error(f"{path} has changed since {folder.path} began with it. Choose another -o folder.")


def _fingerprints_of_inputs(run: FinetuneRun) -> dict[str, str]:
    """Hashes of the models, without the texts that describe them, and of the unlabelled texts."""
    named = {"model": run.model, "teacher": run.teacher}
    folders = {name: ModelFolder.open(path).path for name, path in named.items() if path is not None}
    # A hidden file is not part of a model: a command may be writing its answers to one.
    files = {
        name: [each for each in folder.iterdir() if each.suffix != ".md" and each.name[0] != "."]
        for name, folder in folders.items()
    }
    hashes = {name: fingerprint_of(sorted(each)) for name, each in files.items()}
    if run.unlabelled is not None:
        hashes["unlabelled"] = fingerprint_of([], sha256_of(Path(run.unlabelled)))
    return hashes


def _fingerprints(task: FileTask) -> dict[str, list[dict[str, str | int]]]:
    """The files of train, dev and every further dev set, with their SHA-256."""
    splits = ["train", *(split for split in task.files.splits if split.startswith("dev"))]
    return {split: task.files.fingerprints(task.name, split) for split in splits}


def run_seeds(data: FinetuningData, folder: RunFolder, interrupts: Interrupts, progress: Progress) -> FinetuneResult:
    """Train every seed that is not finished yet, and write the report."""
    run = data.run
    folder.note(examples={"train": data.num_examples, "dev": len(data.dev)}, ended=None)
    seeds = range(run.first_seed, run.first_seed + run.seeds)
    results = [read_seed(folder, seed) or train_seed(data, seed, folder, interrupts, progress) for seed in seeds]
    delete_unfinished(folder)  # a process may have been killed between the result of its last seed and this
    result = summarize_seeds(folder, run.task.metric, results, data.baselines)
    gold = [example.label for example in data.dev]
    best = ModelFolder.open(folder.model)
    predicted = _predict_answers(data, best)
    score = result.best.scores[result.metric]
    warnings = [
        *list_cautions(run.task, gold, predicted, score, trained=run.task, seeds=results),
        *caution_about_size(len(gold), result.metric, score),
    ]
    for warning in warnings:
        progress.say(warning)
    readable = best.metadata.get(READABLE_ELSEWHERE)
    if readable == "encoder":
        progress.say(explain_export(run.task))
    unit = explain_unit(trained_task(best)) if readable == "model" else []
    for note in unit:
        progress.say(note)
    result = replace(result, warnings=warnings)
    if run.task.predicts_one_class:
        plot_confusion([*map(str, gold)], [*map(str, predicted)], run.task.labels, folder.path / "confusion.svg")
    _report(data, folder, result, unit)
    return result


def _predict_answers(data: FinetuningData, best: ModelFolder) -> list[object]:
    """The class or labels that the model of the best seed predicts for each dev example; nothing in other tasks."""
    task = data.run.task
    if not (task.labels and task.spells_answers):
        return []
    model = best.load_model(task.objectives).to(default_device())
    trained = trained_task(best) or task  # with the thresholds that were chosen
    return [each.label for each in predict(model, trained, data.dev, data.tokenizer)]


def _report(data: FinetuningData, folder: RunFolder, result: FinetuneResult, notes: Sequence[str]) -> None:
    """Write the plot of the epochs, ``results.json`` and the model card."""
    epochs = {each.seed: each.epochs for each in result.seeds}
    to_beat = scores_to_beat(result.metric, result.baselines)
    plot_epochs(epochs, result.metric, folder.path / "epochs.svg", to_beat)
    write_results(folder, result)
    write_finetuning_card(folder, data.run, result, notes)
    facts = {"metric": result.metric, "mean": result.mean, "sd": result.sd, "best": result.best.scores}
    folder.note(ended=DONE, **to_plain(facts))
