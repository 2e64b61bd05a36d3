"""The check that a resumed pre-training has the same settings and the same corpus as before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypedDict

from bertkit.config.settings import settings_of
from bertkit.data.shards import read_manifest
from bertkit.errors import data_error, usage_error
from bertkit.pretraining.record import PretrainRun, pretraining_from_json, pretraining_to_json
from bertkit.runs import differing_settings

CHANGEABLE = (
    "gradient_checkpointing",
    "loader_workers",
    "log_every",
    "evaluate_every",
    "evaluation_examples",
    "save_every",
    "keep_checkpoints",
)
"""Settings that no weight depends on, so a resume may change them. In a timed run the weights depend on all that takes
time."""

_PLACES = ("data", "mix", "output", "from_model", "also_evaluate")
"""Folders may have been moved since. The contents of corpora and of the model are compared by checksum."""


class RunIdentity(TypedDict):
    """What a checkpoint and the record keep of a run: its settings, a hash of its corpora and their shares, and that of
    the other text it is evaluated on."""

    run: dict[str, object]
    corpus: str
    also_evaluate: str | None


def run_identity(run: PretrainRun) -> RunIdentity:
    """The settings of ``run``, and the hashes of its texts."""
    return {"run": pretraining_to_json(run), "corpus": _hash_corpora(run), "also_evaluate": _hash_second(run)}


def check_unchanged(run: PretrainRun, recorded: Mapping[str, Any]) -> None:
    """Raise an error that names what has changed since ``recorded``: settings that may not change, or the corpus."""
    before = pretraining_from_json(recorded["run"])
    old, new = _fixed_settings(before), _fixed_settings(run)
    differing = [f"{path} {old.get(path)}, not {new.get(path)}" for path in differing_settings(old, new)]
    if differing:
        raise usage_error(
            f"{run.output} was begun with {'; '.join(differing)}. A resume may change only {', '.join(CHANGEABLE)}. "
            "Keep the other settings, or begin a run in another -o folder."
        )
    if _shares(before) != _shares(run):
        raise usage_error(
            f"{run.output} was begun with {_shares(before)}, not {_shares(run)}. "
            "Resume without --mix, or begin a run in another -o folder."
        )
    if (before.from_model is None) != (run.from_model is None):
        began = "with new weights" if before.from_model is None else f"from {before.from_model}"
        raise usage_error(
            f"{run.output} was begun {began}. Resume without from_model, or begin a run with --from MODEL."
        )
    if recorded["corpus"] != _hash_corpora(run):
        folders = " and ".join(str(folder) for folder, _ in run.corpora)
        raise data_error(
            f"{'the mixture of ' if run.mix else ''}{folders} is not the corpus that {run.output} was begun with. "
            "Prepare that corpus again, or begin a run in another -o folder."
        )
    second = _hash_second(run)
    if recorded.get("also_evaluate", second) != second:  # earlier versions kept none
        raise usage_error(
            f"{run.output} was begun with another text in --also-evaluate: its scores before and after would be of two "
            "texts. Name that text, or begin a run in another -o folder."
        )


def _shares(run: PretrainRun) -> str:
    """The shares of the other corpora, in order; their folders may have been moved."""
    return f"mix shares {', '.join(f'{share:g}' for share in run.mix.values())}" if run.mix else "one corpus"


def _hash_corpora(run: PretrainRun) -> str:
    """The hash of one corpus, or of several with their shares."""
    contents = [read_manifest(folder).content for folder, _ in run.corpora]
    if not run.mix:
        return contents[0]
    parts = [f"{content} {share!r}" for content, (_, share) in zip(contents, run.corpora, strict=True)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def _hash_second(run: PretrainRun) -> str | None:
    return None if run.also_evaluate is None else read_manifest(run.also_evaluate).content


def _fixed_settings(run: PretrainRun) -> dict[str, object]:
    """The settings that a resume may not change, by path."""
    settings = settings_of(run, "")
    return {each.path: each.value for each in settings if each.path.partition(".")[0] not in (*CHANGEABLE, *_PLACES)}
