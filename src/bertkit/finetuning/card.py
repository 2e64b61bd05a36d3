"""The model card of a fine-tuned model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertkit.finetuning.record import FinetuneRun
from bertkit.report.card import Card
from bertkit.report.run_card import base_name, changed_settings, command_and_environment, source_row, write_run_card
from bertkit.runs import RunFolder, read_run


def write_finetuning_card(folder: RunFolder, run: FinetuneRun, results: Mapping[str, Any]) -> None:
    """Write the README.md of the model: data, scores of all seeds, command; ``results`` is what results.json holds."""
    record, task, best = read_run(folder.path), run.task, results["best"]
    examples, sd = record["examples"], results["sd"]
    seeds = [(f"seed {each['seed']}", each["best_epoch"], *each["scores"].values()) for each in results["seeds"]]
    spread = "" if sd is None else f"; {results['metric']} {results['mean']:.4f} ± {sd:.4f} over {len(seeds)} seeds"
    fresh = ", with new weights," if run.from_scratch else ""
    limits = [
        "The epoch and the best seed were chosen by the scores on dev, so these scores are optimistically biased.",
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
        about=f"{base_name(run.model)}{fresh} fine-tuned for {task.name} on {examples['train']:,} "
        f"examples and scored on {examples['dev']:,} others. Seed {best['seed']} is kept{spread}.",
        kind=task.pipeline_tag,
        score_columns=("dev", "epoch", *best["scores"]),
        scores=seeds,
        values=best["scores"],
        data=[source_row(file, f"{split}: ") for split, files in record["data"].items() for file in files],
        base=base_name(run.model),
        limits=limits,
        settings=changed_settings(run, FinetuneRun(task=task, model=run.model, output=run.output)),
        **command_and_environment(record),
    )
    write_run_card(folder, card)
