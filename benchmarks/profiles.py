"""The time in which profile ``fast`` and profile ``paper`` reach the same held-out losses.

    OMP_NUM_THREADS=1 python benchmarks/profiles.py OUT [--minutes 14] [--size mini] [--points 20] [--corpus FILE...]

Both train on the same text (Wikipedia in $BERTKIT_DATA, unless --corpus names files) for the same minutes, one after
the other on the same threads, and save models at intervals. Each model is then evaluated on the same held-out rows of
128 tokens, of which 15 % are masked as in the paper, whatever it was trained on. The time to a loss is the time of the
first model at or below it, without evaluating and saving. OUT has the runs and ``profiles.json``; the same command
continues an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import NamedTuple, get_args

import torch
from ablations import make_head
from time_to_quality import minutes_at

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.mixture import Mixture
from bertkit.data.shards import Corpus
from bertkit.machine.device import default_device
from bertkit.machine.precision import choose_precision
from bertkit.options.pretraining import PretrainProfile
from bertkit.pretraining.task import PretrainingTask
from bertkit.training.evaluation import evaluate_losses

PROFILES: tuple[PretrainProfile, ...] = get_args(PretrainProfile)
TOKENS = 128
NEVER = 10**9


class Point(NamedTuple):
    """The training time of an intermediate model, and its held-out loss."""

    seconds: float
    loss: float


def prepare(arguments: argparse.Namespace) -> Path:
    """The corpus, tokenized once for both profiles."""
    tokenizer, data = arguments.out / "tokenizer", arguments.out / "data"
    files = arguments.corpus or sorted((Path(os.environ["BERTKIT_DATA"]) / "corpora").glob("enwiki-*.jsonl.zst"))
    if not tokenizer.exists():
        bertkit.tokenizer_train(files[:1], vocab_size=arguments.vocab_size, output=tokenizer)
    if not data.exists():
        bertkit.prepare(files, tokenizer=tokenizer, output=data)
    return Path(data)


def train(profile: PretrainProfile, data: Path, arguments: argparse.Namespace) -> Path:
    """Start or continue the run of ``profile``; its minutes are spent on training only."""
    run = Path(arguments.out / profile)
    if (run / "run.json").exists():
        if not (run / "model").exists():
            bertkit.pretrain(resume=run)
        return run
    options = {"snapshots": arguments.points, "log_every": 1, "evaluate_every": NEVER, "evaluation_examples": 1}
    settings = [f"{name}={value}" for name, value in options.items()]
    bertkit.pretrain(data, output=run, size=arguments.size, profile=profile, minutes=arguments.minutes, set=settings)
    return run


def measure(run: Path, data: Path, rows: int) -> list[Point]:
    """The curve of a run, on the same ``rows`` held-out rows for every run."""
    corpus = Corpus.open(data, "heldout")
    source = PretrainingTask().source(Mixture((corpus,)), corpus.load_tokenizer(), seq_length=TOKENS, seed=0)
    minutes = minutes_at(run)
    models = {int(model.name.removeprefix("step-")): model for model in sorted((run / "models").iterdir())}
    points = []
    for step, folder in {**models, max(minutes): run}.items():
        model = ModelFolder.open(folder).load_model(make_head).to(default_device())
        precision = choose_precision(default_device())
        found = evaluate_losses(model, source, batch_size=64, precision=precision, limit=rows)
        points.append(Point(60 * minutes[step], found["mlm"]))
    return points


def find_seconds(points: list[Point], loss: float) -> float | None:
    """When ``loss`` was first reached; None if never."""
    return next((point.seconds for point in points if point.loss <= loss), None)


def show(curves: dict[PretrainProfile, list[Point]]) -> list[dict[str, float | None]]:
    """Print a row for every new lowest loss of ``paper``; the last column is the ratio of the times."""
    print("| held-out loss | paper, s | fast, s | gain |\n|---|---|---|---|")
    table, best = [], float("inf")
    for seconds, loss in curves["paper"]:
        if loss >= best:
            continue
        best = loss
        fast = find_seconds(curves["fast"], loss)
        gain = seconds / fast if fast else None
        table.append({"loss": loss, "paper": seconds, "fast": fast, "gain": gain})
        shown = ("never", "") if fast is None or gain is None else (f"{fast:.0f}", f"{gain:.2f} x")
        print(f"| {loss:.3f} | {seconds:.0f} | {' | '.join(shown)} |")
    for profile, points in curves.items():
        print(f"{profile} ends after {points[-1].seconds:.0f} s at {points[-1].loss:.3f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=14, help="of each profile")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--corpus", type=Path, nargs="*")
    parser.add_argument("--vocab-size", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=500, help="held-out rows")
    arguments = parser.parse_args()
    data = prepare(arguments)
    runs = {profile: train(profile, data, arguments) for profile in PROFILES}
    curves = {profile: measure(run, data, arguments.rows) for profile, run in runs.items()}
    record = {"minutes": arguments.minutes, "threads": torch.get_num_threads(), "curves": curves, "table": show(curves)}
    (arguments.out / "profiles.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
