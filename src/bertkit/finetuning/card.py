"""The model card of a fine-tuned model."""

from __future__ import annotations

from collections.abc import Sequence

from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.report.card import Card, base_name, changed_settings, command_of, source_row, write_run_card
from bertkit.runs import RunFolder, read_run
from bertkit.scores import format_score
from bertkit.task_types import FileTask, MultiLabelTask, QuestionAnsweringTask


def write_finetuning_card(
    folder: RunFolder, run: FinetuneRun, result: FinetuneResult, notes: Sequence[str] = ()
) -> None:
    """Write the README.md of the model: data, scores of seeds and baselines, command, and limits with ``notes``."""
    record, task, best = read_run(folder.path), run.task, result.best
    examples, sd = record["examples"], result.sd
    seeds = [(f"seed {each.seed}", each.best_epoch, *each.scores.values()) for each in result.seeds]
    baselines = [(each.name, "-", *(each.scores.get(name, "-") for name in best.scores)) for each in result.baselines]
    mean = format_score(result.mean)
    spread = "" if sd is None else f"; {result.metric} {mean} ± {format_score(sd)} over {len(seeds)} seeds"
    fresh = ", with new weights," if run.from_scratch else ""
    chosen = "The epoch, the best seed and the thresholds" if _has_thresholds(task) else "The epoch and the best seed"
    limits = [
        *(_sentence(warning) for warning in result.warnings),
        f"{chosen} were chosen by the scores on dev, so these scores are optimistically biased.",
        f"Inputs have at most {task.max_length} tokens.",
    ]
    limits += map(_sentence, notes)
    if task.heldout:
        limits.append(f"Dev is {task.heldout:.0%} of the training file, held out; it is not a sample of other data.")
    if run.limit == examples["train"]:
        limits.append(f"Only the first {examples['train']:,} training examples were used.")
    if run.dev_limit == examples["dev"]:
        limits.append(f"Only the first {examples['dev']:,} dev examples were scored.")
    about = (
        f"{base_name(run.model)}{fresh} fine-tuned for {task.name} on {examples['train']:,} "
        f"examples and scored on {examples['dev']:,} others. Seed {best.seed} is kept{spread}."
    )
    judged = result.verdict()
    card = Card(
        title=task.name,
        about=f"{about}\n\n{judged}." if judged else about,
        pipeline_tag=task.pipeline_tag,
        score_columns=("dev", "epoch", *best.scores),
        scores=[*seeds, *baselines],
        values=best.scores,
        data=[source_row(file, f"{split}: ") for split, files in record["data"].items() for file in files],
        base=base_name(run.model),
        limits=limits,
        settings=changed_settings(run, FinetuneRun(task=task, model=run.model, output=run.output)),
        command=command_of(record),
        environment=record["environment"],
    )
    write_run_card(folder, card)


def _has_thresholds(task: FileTask) -> bool:
    return isinstance(task, MultiLabelTask) or (isinstance(task, QuestionAnsweringTask) and task.null)


def _sentence(text: str) -> str:
    """``text`` with a capital and a full stop; empty if it is."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""
