"""The model cards of finished runs, from their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit import config
from bertkit.data.shards import read_manifest
from bertkit.encoders import name_architecture
from bertkit.experiment.profiles import usual_task
from bertkit.report.card import Card, without_folders, write_card
from bertkit.run import FinetuneRun, PretrainRun, RunFolder
from bertkit.storage import read_json, write_file

_KINDS = {
    "text": "text-classification",
    "labels": "text-classification",
    "spans": "question-answering",
    "tags": "token-classification",
    "choices": "multiple-choice",
}
"""What Hugging Face calls the shapes of tasks."""

_QUESTIONS = {"masked": "fill-mask", "next": "text-generation", "neighbours": "feature-extraction"}
"""The same for pre-trainings, by what was asked."""

_ARCHITECTURES = {"bert": "BERT", "elmo": "ELMo", "gpt": "GPT", "roberta": "RoBERTa"}

_SHAPE = {
    "num_layers": "layers",
    "hidden_size": "wide",
    "num_heads": "heads",
    "projection_size": "wide in each direction",
    "cell_size": "cells",
}

_OWN = ("model", "output", "data")
"""Settings that say where and not how, and are in the command."""


def write_finetuning_card(folder: RunFolder, run: FinetuneRun, results: Mapping[str, Any]) -> None:
    """README.md of the model: data, scores over seeds, command. ``results`` is what results.json holds."""
    record, task, best = read_json(folder.record), run.task, results["best"]
    examples, sd = record["examples"], results["sd"]
    seeds = [(f"seed {each['seed']}", each["best_epoch"], *each["scores"].values()) for each in results["seeds"]]
    spread = "" if sd is None else f"; {results['metric']} {results['mean']:.4f} ± {sd:.4f} over {len(seeds)} seeds"
    fresh = ", with fresh weights," if run.from_scratch else ""
    limits = [
        "The scores were measured on dev, which also picked the epoch and the best seed: they are a little too good.",
        f"Inputs have at most {task.max_length} tokens.",
    ]
    if task.heldout:
        limits.append(f"Dev is {task.heldout:.0%} of the training file, held out; it is not a sample of other data.")
    if run.limit is not None:
        limits.append(f"Only the first {examples['train']:,} training examples were used.")
    if run.dev_limit is not None:
        limits.append(f"Only the first {examples['dev']:,} dev examples were scored.")
    card = Card(
        title=task.name,
        about=f"{_base(run.model)}{fresh} fine-tuned for {task.name} on {examples['train']:,} examples and scored on "
        f"{examples['dev']:,} others. Seed {best['seed']} is kept{spread}.",
        kind=_KINDS.get(task.shape, ""),
        score_columns=("dev", "epoch", *best["scores"]),
        scores=seeds,
        values=best["scores"],
        data=[_row(file, f"{split}: ") for split, files in record["data"].items() for file in files],
        base=_base(run.model),
        limits=limits,
        settings=_changed(run, FinetuneRun(task=task, model=run.model, output=run.output)),
        **_circumstances(record),
    )
    _write(folder, card)


def write_pretraining_card(folder: RunFolder, run: PretrainRun, heldout: Mapping[str, float]) -> None:
    """The same for a model that was trained on raw text."""
    record = read_json(folder.record)
    encoder: Any = run.encoder
    shape = {what: getattr(encoder, field) for field, what in _SHAPE.items() if hasattr(encoder, field)}
    usual: Any = replace(encoder, causal=False) if hasattr(encoder, "causal") else encoder
    card = Card(
        title=f"{_ARCHITECTURES[name_architecture(encoder)]} {'/'.join(map(str, shape.values()))}",
        about=f"{', '.join(f'{number} {what}' for what, number in shape.items())}, pre-trained for "
        f"{run.steps or 0:,} steps with seed {run.seed}.",
        kind=_QUESTIONS[encoder.asked_words],
        score_columns=("held-out text", "value"),
        scores=list(heldout.items()),
        values={},
        data=[_row(file) for file in record.get("data") or fingerprint(run)],
        limits=[
            "It knows what the text says, with its errors and prejudices, and nothing later.",
            "The figures are of held-out text of the same files.",
        ],
        settings=_changed(
            run,
            PretrainRun(
                data=run.data,
                output=run.output,
                encoder=usual,
                task=usual_task(usual, vocab_size=run.task.targets or 0),
            ),
        ),
        **_circumstances(record),
    )
    _write(folder, card)


def fingerprint(run: PretrainRun) -> list[dict[str, Any]]:
    """The text files that the shards were made of, with their SHA-256."""
    sources = read_manifest(run.data).sources
    return [{"file": Path(each.file).name, "bytes": each.bytes, "sha256": each.sha256} for each in sources]


def _write(folder: RunFolder, card: Card) -> None:
    """The seal of the folder does not vouch for README.md: a person may go on writing there."""
    write_file(folder.model / "README.md", lambda path: path.write_text(write_card(card), encoding="utf-8"))


def _row(file: Mapping[str, Any], prefix: str = "") -> tuple[str, int, str]:
    return f"{prefix}{file['file']}", file["bytes"], file["sha256"]


def _circumstances(record: Mapping[str, Any]) -> dict[str, Any]:
    """The command and the machine."""
    program, *words = record["command"]
    name = "bertkit" if Path(program).name in ("main.py", "__main__.py") else Path(program).name
    return {"command": [name, *words], "environment": record["environment"]}


def _changed(run: Any, default: Any) -> list[tuple[str, str]]:
    """Settings with another value than they would have had."""
    usual = {each.path: each.value for each in config.settings_of(config.to_json(default), "")}
    return [
        (each.path, without_folders(str(each.value)))
        for each in config.settings_of(config.to_json(run), "")
        if each.path not in _OWN and usual.get(each.path, ()) != each.value
    ]


def _base(model: Path) -> str:
    """The name of the folder; of a run, whose model is in ``model/``, that of the run."""
    path = model.resolve()
    return path.parent.name if path.name == "model" else path.name
