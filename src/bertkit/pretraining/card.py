"""The model card of a pre-trained model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from bertkit.contracts import PretrainingObjective
from bertkit.encoder_types.architectures import spec_of_config
from bertkit.errors import count_of
from bertkit.pretraining.data import name_corpus
from bertkit.pretraining.defaults import default_pretraining_task
from bertkit.pretraining.record import PretrainRun
from bertkit.report.card import Card, base_name, changed_settings, command_of, source_row, write_run_card
from bertkit.runs import RunFolder, read_run

_SHAPE = {
    "num_layers": "layers",
    "hidden_size": "wide",
    "num_heads": "heads",
    "projection_size": "wide in each direction",
    "cell_size": "cells",
}


def _find_pipeline_tag(run: PretrainRun) -> str:
    """What Hugging Face calls such a model, by the first objective that has a name for its use."""
    default = PretrainingObjective.pipeline_tag
    tags = (each.pipeline_tag for each in run.task.objective_classes())
    return next((tag for tag in tags if tag != default), default)


def write_pretraining_card(
    folder: RunFolder, run: PretrainRun, steps: int, heldout: Mapping[str, float], before: Mapping[str, float]
) -> None:
    """Write the README.md of the model after ``steps`` steps: architecture, data, held-out losses, command.

    ``before`` are the losses of the model that the run continued from, if any.
    """
    record = read_run(folder.path)
    encoder = run.encoder
    shape = {what: getattr(encoder, field) for field, what in _SHAPE.items() if hasattr(encoder, field)}
    # The card lists the settings that are not defaults; without this a causal BERT would be its own default.
    default_encoder = (
        replace(encoder, causal=False) if any(each.name == "causal" for each in fields(encoder)) else encoder
    )
    card = Card(
        title=f"{spec_of_config(encoder).title} {'/'.join(map(str, shape.values()))}",
        about=f"{', '.join(f'{number} {what}' for what, number in shape.items())}, pre-trained for "
        f"{count_of(steps, 'step')} with seed {run.seed}{_describe_mixture(run)}{_describe_origin(run, record)}.",
        pipeline_tag=_find_pipeline_tag(run),
        score_columns=("held-out text", "before", "after") if before else ("held-out text", "value"),
        scores=[(name, *([before.get(name, "-")] if before else []), value) for name, value in heldout.items()],
        values={},
        data=[source_row(file) for file in record["data"]],
        limits=[
            "The model reflects its training text, including errors and biases, and knows nothing newer.",
            "The scores were measured on held-out documents of the same files"
            + (", those named also_ on other text." if run.also_evaluate else "."),
        ],
        base="" if run.from_model is None else base_name(run.from_model),
        settings=changed_settings(
            run,
            PretrainRun(
                data=run.data,
                output=run.output,
                encoder=default_encoder,
                task=default_pretraining_task(default_encoder, vocab_size=run.task.targets or 0),
            ),
        ),
        command=command_of(record),
        environment=record["environment"],
    )
    write_run_card(folder, card)


def _describe_mixture(run: PretrainRun) -> str:
    """The share of the rows from each corpus, if there are several."""
    if not run.mix:
        return ""
    parts = " and ".join(f"{share:.1%} are from {name_corpus(folder)}" for folder, share in run.corpora)
    return f", on rows of which {parts}"


def _describe_origin(run: PretrainRun, record: Mapping[str, Any]) -> str:
    """The model that the run continued from, and how its new head was trained; empty for new weights."""
    if run.from_model is None:
        return ""
    head = f"; the first {run.head_share:.0%} of the steps trained the heads alone" if run.head_share else ""
    return f", from the weights of {base_name(run.from_model)} (SHA-256 {record['from_model']['sha256']}){head}"
