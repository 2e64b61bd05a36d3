"""The baselines of an evaluated model: from the record of its run, or fitted again on its training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertkit.contracts import Example
from bertkit.errors import BertkitError
from bertkit.finetuning.baselines import Baseline, fit_baselines
from bertkit.finetuning.results import RESULTS, read_finetuning_record, read_results
from bertkit.task_types import FileTask, TextTask
from bertkit.task_types.held_out import describe_shared_texts, text_key


class FoundBaselines(NamedTuple):
    """The ``baselines`` on the evaluated examples; ``why_none`` says in a sentence why there are none.

    ``shared`` has a sentence if the model was trained on some texts of the examples. It is empty where the baselines
    come from the record, as the training has told those of its dev.
    """

    baselines: Sequence[Baseline]
    why_none: str = ""
    shared: Sequence[str] = ()


def find_baselines(
    model: Path, trained: FileTask, task: FileTask, split: str, examples: Sequence[Example]
) -> FoundBaselines:
    """The baselines of ``task`` on the ``examples`` of a ``split``, which the ``model`` has predicted.

    Where the run of the model measured them on the same examples, they are read from its record. Otherwise they are
    fitted again on the training data of the run, which has to be unchanged. A model outside of a run was trained on
    unknown data: they are fitted on the train split of ``task``, if there is one. ``trained`` is the task of the model.
    """
    record = read_finetuning_record(model)
    try:
        if record and (recorded := _read_recorded(model.parent, record, trained, task, split, examples)):
            return FoundBaselines(recorded)
        why_none = _why_not_fitted(record, trained if record else task, task, split)
        if why_none:
            return FoundBaselines([], f"no baseline to compare with: {why_none}")
        source = trained if record else task
        train = source.examples("train")[: record["run"]["limit"] if record else None]
        shared: list[str] = []
        if record and isinstance(source, TextTask):
            shared = describe_shared_texts(set(map(text_key, train)), examples, split)  # type: ignore[arg-type]
        return FoundBaselines(fit_baselines(task, train, examples), shared=shared)
    except BertkitError as error:
        return FoundBaselines([], f"no baseline to compare with: {error}")


def _read_recorded(
    run: Path, record: Mapping[str, Any], trained: FileTask, task: FileTask, split: str, examples: Sequence[Example]
) -> list[Baseline]:
    """The baselines of the run, if it measured them on the same examples."""
    if split != "dev" or (task.name, task.heldout) != (trained.name, trained.heldout):
        return []
    same_number = len(examples) == record.get("examples", {}).get("dev")
    is_same = has_dev_of_training(task, record) and same_number
    return read_results(run).baselines if is_same and (run / RESULTS).exists() else []


def has_dev_of_training(task: FileTask, record: Mapping[str, Any]) -> bool:
    """Whether the files that dev comes from, which is train where dev is held out, are those in the ``record``."""
    source = "train" if task.heldout else "dev"
    recorded: object = record["data"].get(source)
    return task.files.fingerprints(task.name, source) == recorded


def _why_not_fitted(record: Mapping[str, Any], source: FileTask, task: FileTask, split: str) -> str:
    """Why the baselines of ``task`` cannot be fitted on the train split of ``source``; empty if they can."""
    if not task.baselines():
        return f"{task.name} has none"
    if split == "train":
        return "train is what it would be fitted on"
    if "train" not in source.files.splits or not source.files.splits["train"].files:
        return "the training data of this model is not known"
    if missing := source.files.missing(source.name, "train"):
        return f"its training data is gone: {missing[0]} does not exist"
    if record and source.files.fingerprints(source.name, "train") != record["data"]["train"]:
        return "its training data has changed since"
    return ""
