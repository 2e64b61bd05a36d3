"""Scores on five GLUE tasks after pre-trainings of different lengths, beside a bag of words.

    python benchmarks/time_to_quality.py OUT --data DATA [--steps 640 1600 3200 ...] [--size mini] [--limit 2000]
        [--architecture bert]

Each length is a pre-training of its own, whose rate falls to 0 at its end. Its model is fine-tuned for five tasks with
three seeds and the default settings. Bits per character are those of ``ablations.py``. OUT has the runs and
``curve.jsonl``; the same command continues an interrupted series.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablations import measure as measure_loss
from ablations import open_heldout

import bertkit
from bertkit.runs import read_metrics

TASKS = ("sst2", "stsb", "cola", "rte", "mrpc")


def pretrain(run: Path, steps: int, arguments: argparse.Namespace) -> None:
    """Start or continue a pre-training."""
    if not (run / "run.json").exists():
        bertkit.pretrain(
            arguments.data,
            output=run,
            architecture=arguments.architecture,
            size=arguments.size,
            profile="fast",
            steps=steps,
            set=arguments.set,
        )
    elif not (run / "model").exists():
        bertkit.pretrain(resume=run)


def minutes_at(run: Path) -> dict[int, float]:
    """Minutes of training up to each logged step, without evaluating and saving."""
    found, minutes, last = {}, 0.0, 0
    for record in read_metrics(run / "metrics.jsonl"):
        if record["kind"] == "train":
            minutes += (record["step"] - last) * record["tokens"] / record["tokens_per_second"] / 60
            last = record["step"]
            found[last] = minutes
    return found


def finetune(run: Path, task: str, output: Path, limit: int | None) -> Iterator[dict[str, Any]]:
    """The score of the model, and those of the trivial answers."""
    result = bertkit.finetune(f"glue:{task}", model=run, output=output, seeds=3, limit=limit, progress="quiet")
    yield {"system": run.name, "task": task, "mean": 100 * result.mean, "sd": 100 * (result.sd or 0.0)}
    for each in result.baselines:
        yield {"system": each.name, "task": task, "mean": 100 * (each.scores[result.metric] or 0.0), "sd": 0.0}


def measure(steps: int, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Pre-train and fine-tune; a record for each score."""
    run = arguments.out / f"steps-{steps}"
    pretrain(run, steps, arguments)
    loss = measure_loss(run, open_heldout(arguments.data))
    yield {"system": run.name, "task": "bits per character", "mean": loss["bits_per_character"], "sd": 0.0}
    yield {"system": run.name, "task": "minutes", "mean": max(minutes_at(run).values()), "sd": 0.0}
    for task in TASKS:
        yield from finetune(run, task, arguments.out / "finetuning" / f"{task}-{steps}", arguments.limit)


def show(records: list[Mapping[str, Any]]) -> None:
    """Print a table: a row for each system, a column for each score."""
    found = {(each["system"], each["task"]): each for each in records}
    columns = ("minutes", "bits per character", *TASKS)
    print(f"| model | {' | '.join(columns)} | mean |\n|{'---|' * (len(columns) + 2)}")
    for system in dict.fromkeys(each["system"] for each in records):
        cells = [found.get((system, column)) for column in columns]
        shown = [f"{each['mean']:.2f} ± {each['sd']:.1f}" if each else "-" for each in cells]
        scores = [each["mean"] for each in cells[2:] if each]
        print(f"| {system} | {' | '.join(shown)} | {statistics.fmean(scores):.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder that bertkit prepare has written")
    parser.add_argument("--steps", type=int, nargs="*", default=[640, 1600, 3200])
    parser.add_argument("--architecture", default="bert")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--limit", type=int, default=2000, help="training examples of each task")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the pre-training")
    arguments = parser.parse_args()
    file: Path = arguments.out / "curve.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    records = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for steps in arguments.steps:
        if not any(each["system"] == f"steps-{steps}" for each in records):
            found = list(measure(steps, arguments))
            records += found
            with file.open("a") as stream:
                stream.writelines(json.dumps(each) + "\n" for each in found)
    show(records)


if __name__ == "__main__":
    main()
