"""The check that a resumed pre-training has the same settings and the same corpus as before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from bertkit import config
from bertkit.data.shards import read_manifest
from bertkit.errors import data_error, usage_error
from bertkit.pretraining.record import PretrainRun, pretraining_from_json, pretraining_to_json

CHANGEABLE = (
    "gradient_checkpointing",
    "loader_workers",
    "log_every",
    "evaluate_every",
    "evaluation_examples",
    "save_every",
    "keep_checkpoints",
)
"""Settings that no weight depends on, so a resume may change them."""

_PLACES = ("data", "output", "from_model", "also_evaluate")
"""Folders may have been moved since; their content is compared by checksum."""


class RunIdentity(TypedDict):
    """What a checkpoint and the record keep of a run: its settings, and a hash of its corpus."""

    run: dict[str, object]
    corpus: str


def run_identity(run: PretrainRun) -> RunIdentity:
    """The settings of ``run``, and the hash of its corpus."""
    return {"run": pretraining_to_json(run), "corpus": read_manifest(run.data).content}


def check_unchanged(run: PretrainRun, recorded: Mapping[str, Any]) -> None:
    """Raise an error that names what has changed since ``recorded``: settings that may not change, or the corpus."""
    old = _fixed_settings(pretraining_from_json(recorded["run"]))
    new = _fixed_settings(run)
    differing = [f"{path} {old.get(path)}, not {new.get(path)}" for path in old | new if old.get(path) != new.get(path)]
    if differing:
        raise usage_error(
            f"{run.output} was begun with {'; '.join(differing)}. A resume may change only {', '.join(CHANGEABLE)}. "
            "Keep the other settings, or begin a run in another -o folder."
        )
    if recorded["corpus"] != read_manifest(run.data).content:
        raise data_error(
            f"{run.data} is not the corpus that {run.output} was begun with. Prepare that corpus again, or begin a run "
            "in another -o folder."
        )


def _fixed_settings(run: PretrainRun) -> dict[str, object]:
    """The settings that a resume may not change, by path."""
    settings = config.settings_of(run, "")
    return {each.path: each.value for each in settings if each.path not in (*CHANGEABLE, *_PLACES)}
