"""Pre-training from start to finish: open the corpus, build, train, save, report; and resume what was interrupted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from bertkit.checkpoint import training_state as store
from bertkit.config.records import to_plain
from bertkit.config.settings import Setting, apply
from bertkit.data.mixture import Mixture
from bertkit.errors import usage_error
from bertkit.machine.device import default_device, device_record
from bertkit.machine.interrupts import Interrupts
from bertkit.machine.precision import MEASURED, choose_precision, reason_for_record
from bertkit.pretraining.card import write_pretraining_card
from bertkit.pretraining.data import PretrainingData, data_fingerprints
from bertkit.pretraining.data_report import DataReport
from bertkit.pretraining.from_model import check_same_model, model_fingerprint
from bertkit.pretraining.heldout import read_last_evaluation
from bertkit.pretraining.job import PretrainingJob, build_job, check_division, check_encoder, starts_from_counts
from bertkit.pretraining.loop import train
from bertkit.pretraining.model_size import check_memory
from bertkit.pretraining.record import PretrainRun, pretraining_from_json
from bertkit.pretraining.resuming import check_unchanged
from bertkit.pretraining.saving import restore_state, save_current_model
from bertkit.report.plots import plot_training
from bertkit.report.progress import Progress, describe_duration
from bertkit.results import Result
from bertkit.runs import DONE, RunFolder, read_metrics, read_run
from bertkit.storage.atomic import require_space
from bertkit.training.distributed import ProcessGroup, join_process_group, world_size


@dataclass(frozen=True, kw_only=True, repr=False)
class PretrainResult(Result):
    """The result of a pre-training. ``heldout`` has every loss and accuracy on held-out rows, by name.

    ``seconds`` are those of all parts of a run that was resumed; of a part that was killed, up to its last checkpoint.

    ``before`` has the same of the model that the run continued from; it is empty for new weights.
    """

    folder: Path
    steps: int
    seconds: float
    data: DataReport
    heldout: dict[str, float]
    before: dict[str, float]


def pretrain(run: PretrainRun, progress: Progress, *, origins: Mapping[str, str] | None = None) -> PretrainResult:
    """Run a pre-training into a new folder; ``origins`` say where each setting came from, for the record.

    Raises Interrupted (after saving) on Ctrl-C or SIGTERM, BertkitError on anything that the user can fix.
    """
    check_settings(run)
    with _open_run(run.output, progress) as (group, folder, progress):
        if folder.writes and folder.record.exists():
            raise usage_error(f"{run.output} holds a run already. Give --resume {run.output}, or another -o folder.")
        data = PretrainingData.open(run)
        if starts_from_counts(run, data.train):  # 20 s per 100 M tokens and core, if no earlier run has counted
            progress.say(f"token embeddings start from the co-occurrence counts of {data.train.num_tokens:,} tokens")
        job = build_job(_fill_in_precision(run, group), group, data)
        _require_space(job, folder)
        for line in (*job.report.lines(), *job.notes):
            progress.say(line)
        all_origins = {**(origins or {}), **({"precision": MEASURED} if run.precision is None else {})}
        # Nothing can be lost before this line, so a signal ends the process at once; from here the step is saved first.
        with Interrupts(distributed=group.size > 1) as interrupts:
            folder.begin(
                **job.identity,
                kind="pretrain",
                data_report=to_plain(job.report),
                data=data_fingerprints(job.run),
                **model_fingerprint(job.run),
                origins=all_origins,
                device=device_record(),
                **(reason_for_record(all_origins) if folder.writes else {}),  # others would have to measure
            )
            return _train(job, folder, interrupts, progress)


def resume(path: Path, progress: Progress, settings: Sequence[Setting] = ()) -> PretrainResult:
    """Continue an interrupted pre-training from its newest valid checkpoint, with any number of processes.

    On a CPU, with ``steps`` and the same number of processes, the result is the same bit for bit (not ELMo's in several
    processes, whose recurrent states begin at zero again); with ``minutes`` it depends on the speed.

    ``settings`` may change how often the run logs, evaluates or saves; changes of other settings, and other data, are
    errors.
    """
    record = read_begun(path)
    with _open_run(path, progress) as (group, folder, progress):
        recorded = pretraining_from_json(record["run"], source=f"{path}/run.json")
        if any(each.path == "output" for each in settings):
            raise usage_error(f"{path} is continued where it is: leave out --set output.")
        run = apply(dataclasses.replace(recorded, output=path), settings)
        if not run.data.is_dir():
            raise usage_error(
                f"no data at {run.data}, with which {path} was begun. If it is elsewhere: "
                f"bertkit pretrain --resume {quote(str(path))} --set data=FOLDER"
            )
        newest, faults = group.from_first(lambda: store.latest(folder.checkpoints))
        for fault in faults:
            progress.say(f"{fault} Falling back to the checkpoint before it.")
        saved = store.load_state(newest) if newest else {}
        check_unchanged(run, saved or record)
        if newest is None:
            check_same_model(run, record)
        job = build_job(run, group, initial_weights=newest is None)
        if newest is None:
            progress.say(f"{path} has no checkpoint yet; starting again from step 0")
        else:
            restore_state(job, newest, saved)
            progress.say(f"resuming at step {job.state.step:,}{_describe_rest(job)}")
        _require_space(job, folder)
        with Interrupts(distributed=group.size > 1) as interrupts:
            if folder.writes:
                folder.delete_records(lambda record: bool(record["step"] > job.state.step))
                changed = {each.path: each.origin for each in settings}
                folder.note(**job.identity, origins={**record["origins"], **changed}, ended=None)
                # The last start may have been killed between saving a checkpoint and deleting the oldest.
                store.prune(folder.checkpoints, run.keep_checkpoints)
            return _train(job, folder, interrupts, progress)


def read_begun(path: Path) -> dict[str, Any]:
    """The record of a pre-training; runs of other verbs continue when their command is repeated."""
    record = read_run(path)
    if record["kind"] != "pretrain":
        raise usage_error(f"{path} is a run of {record['kind']}. Repeat its command: it continues where it stopped.")
    return record


def check_settings(run: PretrainRun) -> None:
    """Raise a usage error if the settings do not fit each other, the corpus, or the memory of this machine.

    Nothing is written before, and the shards of the corpus are not read yet.
    """
    if (run.steps is None) == (run.minutes is None):
        raise usage_error("give either --steps or --minutes.")
    check_encoder(run, Mixture.open(run.corpora, verify=False).corpora[0].load_tokenizer())
    check_division(run, world_size())
    check_memory(run)


def _require_space(job: PretrainingJob, folder: RunFolder) -> None:
    """Check that the disk has room for what is not there yet: the checkpoints that are kept and the models.

    There is one checkpoint more while it is written.
    """
    if not folder.writes:
        return
    groups = job.state.groups()
    sizes = {name: sum(tensor.nbytes for tensor in group.values()) for name, group in groups.items()}
    checkpoints = max(1, job.run.keep_checkpoints + 1 - len(store.checkpoints(folder.checkpoints)))
    models = min(job.run.snapshots, job.run.steps or job.run.snapshots) - len(list(folder.models.glob("step-*")))
    require_space(folder.path, checkpoints * sum(sizes.values()) + models * sizes["model"])


@contextmanager
def _open_run(path: Path, progress: Progress) -> Iterator[tuple[ProcessGroup, RunFolder, Progress]]:
    """The process group and the run folder ``path``; only the first process writes to it and reports progress."""
    with join_process_group() as group, RunFolder(path, writes=group.is_first) as folder:
        for notice in folder.notices:
            progress.say(notice)
        yield group, folder, progress if group.is_first else Progress("quiet")


def _fill_in_precision(run: PretrainRun, group: ProcessGroup) -> PretrainRun:
    """``run`` with its precision, which the first process measures for all if it is not given."""
    return dataclasses.replace(
        run, precision=group.from_first(lambda: run.precision or choose_precision(default_device()))
    )


def _describe_rest(job: PretrainingJob) -> str:
    if job.run.is_timed:
        return f", after {describe_duration(job.done)} of {describe_duration(job.total)}"
    return f" of {job.total:,}"


def _train(job: PretrainingJob, folder: RunFolder, interrupts: Interrupts, progress: Progress) -> PretrainResult:
    """Train, then write the model, its card, the plot of the losses, and how the run ended."""
    heldout = train(job, folder, interrupts, progress)
    seconds, joules = job.watch.seconds, job.meter.joules
    before = read_last_evaluation(folder, before=True)
    save_current_model(job, folder.model, heldout)
    if folder.writes:
        write_pretraining_card(folder, job.run, job.state.step, heldout, before)
        plot_training(read_metrics(folder.metrics), folder.path / "training.svg")
        cost = {"seconds": round(seconds, 1), "joules": joules}
        folder.note(ended=DONE, steps=job.state.step, **cost, heldout=heldout, before=before)
    return PretrainResult(
        folder=folder.path, steps=job.state.step, seconds=seconds, data=job.report, heldout=heldout, before=before
    )
