"""The model card of a pre-trained model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bertkit.data.shards import read_manifest
from bertkit.encoder_types.architectures import spec_of_config
from bertkit.pretraining.defaults import default_pretraining_task
from bertkit.pretraining.record import PretrainRun
from bertkit.report.card import Card
from bertkit.report.run_card import changed_settings, command_and_environment, source_row, write_run_card
from bertkit.runs import RunFolder, read_run

_SHAPE = {
    "num_layers": "layers",
    "hidden_size": "wide",
    "num_heads": "heads",
    "projection_size": "wide in each direction",
    "cell_size": "cells",
}


def write_pretraining_card(folder: RunFolder, run: PretrainRun, steps: int, heldout: Mapping[str, float]) -> None:
    """Write the README.md of the model after ``steps`` steps: architecture, data, held-out losses, command."""
    record = read_run(folder.path)
    encoder = run.encoder
    shape = {what: getattr(encoder, field) for field, what in _SHAPE.items() if hasattr(encoder, field)}
    # The card lists the settings that are not defaults; without this a causal BERT would be its own default.
    default_encoder = replace(encoder, causal=False) if hasattr(encoder, "causal") else encoder
    card = Card(
        title=f"{spec_of_config(encoder).title} {'/'.join(map(str, shape.values()))}",
        about=f"{', '.join(f'{number} {what}' for what, number in shape.items())}, pre-trained for "
        f"{steps:,} steps with seed {run.seed}.",
        kind=run.task.objective_classes()[0].pipeline_tag,
        score_columns=("held-out text", "value"),
        scores=list(heldout.items()),
        values={},
        data=[source_row(file) for file in record["data"]],
        limits=[
            "The model reflects its training text, including errors and biases, and knows nothing newer.",
            "The scores were measured on held-out documents of the same files.",
        ],
        settings=changed_settings(
            run,
            PretrainRun(
                data=run.data,
                output=run.output,
                encoder=default_encoder,
                task=default_pretraining_task(default_encoder, vocab_size=run.task.targets or 0),
            ),
        ),
        **command_and_environment(record),
    )
    write_run_card(folder, card)


def data_fingerprints(run: PretrainRun) -> list[dict[str, str | int]]:
    """Size and SHA-256 of the text files that the shards were made from."""
    sources = read_manifest(run.data).sources
    return [{"file": Path(each.file).name, "bytes": each.bytes, "sha256": each.sha256} for each in sources]
