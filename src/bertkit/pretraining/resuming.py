"""What a pre-training that goes on must have in common with the one that was begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertkit import config
from bertkit.data.shards import read_manifest
from bertkit.errors import data_error, usage_error
from bertkit.pretraining.record import PretrainRun, pretraining_from_json, pretraining_to_json

FREE = (
    "gradient_checkpointing",
    "loader_workers",
    "log_every",
    "evaluate_every",
    "evaluation_examples",
    "save_every",
    "keep_checkpoints",
)
"""Settings that no step depends on, and so may be others after a resume."""

_PLACES = ("data", "output")
"""Where things are may change as well: folders are moved. What is in them may not."""


def describe_run(run: PretrainRun) -> dict[str, Any]:
    """What a checkpoint and the record remember: the settings, and a hash of the tokens they were used on."""
    return {"run": pretraining_to_json(run), "corpus": read_manifest(run.data).content}


def check_unchanged(run: PretrainRun, begun: Mapping[str, Any]) -> None:
    """Refuse to go on as ``run`` with what was begun as ``begun``, naming every setting that differs."""
    was = _settings(pretraining_from_json(begun["run"]))
    now = _settings(run)
    differing = [f"{path} {was.get(path)}, not {now.get(path)}" for path in was | now if was.get(path) != now.get(path)]
    if differing:
        raise usage_error(
            f"{run.output} was begun with {'; '.join(differing)}. A resume may change only {', '.join(FREE)}. "
            "Leave the others as they were, or begin a run in another -o folder."
        )
    if begun.get("corpus", found := read_manifest(run.data).content) != found:
        raise data_error(
            f"{run.data} is not the corpus that {run.output} was begun with. Prepare that one again, or begin a run "
            "in another -o folder."
        )


def _settings(run: PretrainRun) -> dict[str, Any]:
    every = config.settings_of(run, "")
    return {each.path: each.value for each in every if each.path not in (*FREE, *_PLACES)}
