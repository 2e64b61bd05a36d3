"""What each choice of a pre-training recipe is worth: one change at a time, at equal seconds.

    OMP_NUM_THREADS=1 python benchmarks/ablations.py OUT --data DATA [--seconds 90] [--seeds 1] [--only fast adamw ...]

Each row is profile ``fast`` with the changes of ``VARIANTS``. The held-out loss is measured alike for all: 15 % of the
words of held-out rows of 128 tokens are hidden whole. Bits per character compare vocabularies: give another DATA and
the same OUT. OUT has the runs and ``ablations.jsonl``; the same command continues an interrupted series.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bertkit
from bertkit.batch import IGNORE
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Encoder
from bertkit.data.mixture import Mixture
from bertkit.data.shards import Corpus
from bertkit.machine.device import default_device
from bertkit.machine.precision import choose_precision
from bertkit.objective_settings import Masking, ObjectiveSettings
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.pretraining.task import PretrainingTask, Source
from bertkit.runs import read_metrics
from bertkit.training.evaluation import evaluate_losses, spread_rows

HELDOUT_ROWS = 1000
TOKENS = 128
HIDDEN = Masking(mask=1.0, random=0.0, keep=0.0, whole_word=True)
QUIET = ("evaluate_every=1000000000", "evaluation_examples=1")
VARIANTS: Mapping[str, Sequence[str]] = {
    "fast": (),
    "adamw": ("optimizer.kind=adam", "optimizer.lr=2e-3"),
    "muon-0.04": ("optimizer.muon_lr=0.04",),
    "lr-2e-3": ("optimizer.lr=2e-3",),
    "rate-30-to-15": ("task.masking.final_rate=0.15",),
    "single-tokens": ("task.masking.whole_word=false",),
    "half-batch": ("batch_size=32", "long_batch_size=16"),
    "rows-64": ("long_seq_length=null",),
    "rows-32-128": ("seq_length=32",),
    "linear": ("schedule.decay=linear",),
    "averaged": ("averaging.kind=tail",),
    "nsp": ('task.objectives=["mlm","nsp"]',),
    "random-embeddings": ("token_init=normal",),
    "sinusoids": ("encoder.position_init=sinusoidal",),
}


class Heldout(NamedTuple):
    """Held-out rows with hidden words, and the characters per hidden token."""

    source: Source
    characters: float


def open_heldout(data: Path) -> Heldout:
    corpus = Corpus.open(data, "heldout")
    tokenizer = corpus.load_tokenizer()
    source = PretrainingTask(objectives=("mlm",), masking=HIDDEN).source(
        Mixture((corpus,)), tokenizer, seq_length=TOKENS, seed=0
    )
    rows = spread_rows(len(source), min(len(source), HELDOUT_ROWS))  # those of ``evaluate_losses``
    labels = source.batch(0, rows).labels["mlm"]
    hidden = [tokenizer.surface_form(number)[0] for number in labels[labels != IGNORE].tolist()]
    return Heldout(source, statistics.fmean(map(len, hidden)))


def train(folder: Path, data: Path, variant: str, seed: int, arguments: argparse.Namespace) -> None:
    if (folder / "model").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    bertkit.pretrain(
        data,
        output=folder,
        size=arguments.size,
        profile="fast",
        minutes=arguments.seconds / 60,
        seed=seed,
        set=[*QUIET, *VARIANTS[variant]],
        progress="quiet",
    )


def measure(folder: Path, heldout: Heldout) -> dict[str, float]:
    model = ModelFolder.open(folder).load_model(make_head)
    precision = choose_precision(default_device())
    loss = evaluate_losses(model, heldout.source, batch_size=64, precision=precision, limit=HELDOUT_ROWS)["mlm"]
    steps = max(record["step"] for record in read_metrics(folder / "metrics.jsonl"))
    return {"steps": steps, "loss": loss, "bits_per_character": loss / math.log(2) / heldout.characters}


def make_head(encoder: Encoder) -> dict[str, MaskedLanguageModel]:
    return {"mlm": MaskedLanguageModel.build(encoder, ObjectiveSettings())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder that bertkit prepare has written")
    parser.add_argument("--seconds", type=float, default=90, help="of each run")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--only", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    log = arguments.out / "ablations.jsonl"
    done: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {(record["data"], record["variant"], record["seed"]) for record in done}
    heldout = open_heldout(arguments.data)
    for variant in arguments.only:
        for seed in range(arguments.seeds):
            if (arguments.data.name, variant, seed) in known:
                continue
            folder = arguments.out / f"{arguments.data.name}-{variant}-{seed}"
            train(folder, arguments.data, variant, seed, arguments)
            record = {"data": arguments.data.name, "variant": variant, "seed": seed, **measure(folder, heldout)}
            print(json.dumps(record), flush=True)
            with log.open("a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
