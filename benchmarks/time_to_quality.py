"""Scores on five GLUE tasks after different times of pre-training.

    python benchmarks/time_to_quality.py OUT [--minutes 60] [--size mini] [--points 4] [--corpus FILE...]

One pre-training on Wikipedia and books (in $BERTKIT_DATA, unless --corpus names files) for the given minutes saves
intermediate models. Each of them is then fine-tuned for five tasks with three seeds, and so is the untrained network,
at minute 0. OUT has the runs, ``curve.json`` and ``curve.svg``; the same command continues an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

import bertkit
from bertkit.report.style import (
    BASELINE_DASHES,
    FAINT,
    INK,
    add_legend,
    make_figure,
    save,
    series_style,
    set_panel_title,
)
from bertkit.runs import read_metrics

TASKS = ("sst2", "cola", "mrpc", "stsb", "rte")


def corpus_files() -> list[Path]:
    """All of Wikipedia, and the books whose names begin with "the a"."""
    corpora = Path(os.environ["BERTKIT_DATA"]) / "corpora"
    return sorted([*corpora.glob("enwiki-*.jsonl.zst"), *corpora.glob("books/the-a*.txt.gz")])


def pretrain(arguments: argparse.Namespace) -> Path:
    """Start or continue the pre-training."""
    out: Path = arguments.out
    tokenizer, data, run = out / "tokenizer", out / "data", out / "run"
    files = arguments.corpus or corpus_files()
    if not tokenizer.exists():
        bertkit.tokenizer_train(files[:3], vocab_size=arguments.vocab_size, output=tokenizer)
    if not data.exists():
        bertkit.prepare(files, tokenizer=tokenizer, output=data)
    if not (run / "run.json").exists():
        bertkit.pretrain(
            data,
            output=run,
            size=arguments.size,
            profile="fast",
            minutes=arguments.minutes,
            set=[f"snapshots={arguments.points}", *arguments.set],
        )
    elif not (run / "model").exists():
        bertkit.pretrain(resume=run)
    return run


def minutes_at(run: Path) -> dict[int, float]:
    """Minutes of training up to each logged step, without evaluating and saving."""
    found, minutes, last = {}, 0.0, 0
    for record in read_metrics(run / "metrics.jsonl"):
        if record["kind"] == "train":
            minutes += (record["step"] - last) * record["tokens"] / record["tokens_per_second"] / 60
            last = record["step"]
            found[last] = minutes
    return found


def measure(run: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """A record per model and task."""
    minutes = minutes_at(run)
    points = [(int(model.name.removeprefix("step-")), model) for model in sorted((run / "models").iterdir())]
    records = []
    for step, model in [(0, run), *points, (max(minutes), run)]:
        spent = minutes[min(minutes, key=lambda known: abs(known - step))] if step else 0.0
        for task in TASKS:
            result = bertkit.finetune(
                f"glue:{task}",
                model=model,
                output=arguments.out / "finetuning" / f"{task}-{step}",
                from_scratch=step == 0,
                seeds=3,
                epochs=arguments.epochs,
                lr=arguments.lr,
                limit=arguments.limit,
                progress="quiet",
            )
            mean, sd = 100 * result.mean, 100 * (result.sd or 0.0)
            record = {"minutes": spent, "step": step, "task": task, "metric": result.metric, "mean": mean, "sd": sd}
            records.append(record)
            print(f"{spent:6.1f} minutes  {task:5}  {result.metric} {mean:.1f} ± {sd:.1f}", flush=True)
    return records


def show(records: list[dict[str, Any]], out: Path) -> None:
    """Write ``curve.json`` and ``curve.svg``, and print a table."""
    (out / "curve.json").write_text(json.dumps(records, indent=1) + "\n")
    times = sorted({record["minutes"] for record in records})
    print(f"| minutes | {' | '.join(TASKS)} | mean |\n|{'---|' * (len(TASKS) + 2)}")
    table = {(record["minutes"], record["task"]): record for record in records}
    for minutes in times:
        row = [table[minutes, task] for task in TASKS]
        shown = " | ".join(f"{each['mean']:.1f} ± {each['sd']:.1f}" for each in row)
        print(f"| {minutes:.0f} | {shown} | {statistics.fmean(each['mean'] for each in row):.1f} |")
    draw(records, out / "curve.svg")


def draw(records: list[dict[str, Any]], output: Path) -> None:
    """A panel per task: the mean over seeds with its standard deviation, and the untrained network as a line."""
    figure, panels = make_figure(
        len(TASKS), width=2.3 * len(TASKS), height=3.2, title="Score on dev after minutes of pre-training"
    )
    for panel, task in zip(panels, TASKS, strict=True):
        points = sorted((each for each in records if each["task"] == task), key=lambda each: each["minutes"])
        minutes, means, sds = ([each[name] for each in points] for name in ("minutes", "mean", "sd"))
        panel.errorbar(minutes, means, sds, **series_style(0), linewidth=2, capsize=3, label="mean, sd of 3 seeds")
        panel.axhline(means[0], color=INK, linewidth=1.2, linestyle=(0, BASELINE_DASHES[0]), label="untrained network")
        set_panel_title(panel, f"{task}, {points[0]['metric']}")
        panel.set_xlabel("minutes", color=FAINT, fontsize=9)
    add_legend(panels[0])
    save(figure, output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--corpus", type=Path, nargs="*")
    parser.add_argument("--vocab-size", type=int, default=4000)
    parser.add_argument("--lr", type=float, default=3e-4, help="of fine-tuning; use 5e-5 for a large model")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=int, help="training examples of each task")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the pre-training")
    arguments = parser.parse_args()
    show(measure(pretrain(arguments), arguments), arguments.out)


if __name__ == "__main__":
    main()
