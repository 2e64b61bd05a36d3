"""Classification and regression of one or two texts, from GLUE's files, and of NSMC as a user's table."""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from transformers import AutoModelForSequenceClassification

from quality.loop import MAX_LENGTH, Comparison, Trainee, load_tokenizer, predict


class Row(NamedTuple):
    """One or two texts; the label is a number, or the index of a class."""

    texts: list[str]
    label: float


@dataclass(frozen=True, kw_only=True)
class Texts(Comparison):
    """``columns`` of the texts and of the ``label`` in the files of ``folder``; without ``words`` labels are numbers.

    ``devs`` are the dev files, and the suffix of the metric's name for each.
    """

    folder: str
    columns: tuple[int, ...]
    label: int
    words: tuple[str, ...] = ("0", "1")
    header: bool = True
    train: str = "train"
    devs: tuple[tuple[str, str], ...] = (("dev", ""),)

    @property
    def home(self) -> Path:
        return Path(os.environ["BERTKIT_DATA"]) / self.folder

    def rows(self, split: str, limit: int | None) -> list[Row]:
        with (self.home / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
            cells = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1 if self.header else 0 :]
        return [
            Row(
                [row[column] for column in self.columns],
                float(self.words.index(row[self.label]) if self.words else row[self.label]),
            )
            for row in cells[:limit]
        ]

    def trainee(self) -> Trainee:
        model = AutoModelForSequenceClassification.from_pretrained(self.weights, num_labels=len(self.words) or 1)
        cut = load_tokenizer(self.weights)

        def encode(rows: Sequence[Row]) -> Any:
            columns = map(list, zip(*(row.texts for row in rows), strict=True))
            batch = cut(*columns, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            kind = torch.long if self.words else torch.float32
            return {**batch, "labels": torch.tensor([row.label for row in rows]).to(kind)}

        def evaluate() -> dict[str, float]:
            found = {}
            for split, ending in self.devs:
                rows = self.rows(split, self.dev_limit)
                logits = torch.stack(predict(model, rows, encode, size=lambda row: sum(map(len, row.texts))))
                guesses = (logits.argmax(1) if self.words else logits[:, 0]).tolist()
                found[self.metric + ending] = score(self.metric, [row.label for row in rows], guesses)
            return found

        return Trainee(model=model, rows=self.rows(self.train, self.limit), encode=encode, evaluate=evaluate)

    def files(self, folder: Path) -> dict[str, Any]:
        for split in (self.train, *(split for split, _ in self.devs)):
            limit = None if split == self.train or self.dev_limit is None else self.dev_limit + self.header
            with (self.home / f"{split}.tsv").open("rb") as file:
                (folder / f"{split}.tsv").write_bytes(b"".join(islice(file, limit)))
        if self.task:
            return {"data": folder}
        return {"task": folder / f"{self.train}.tsv", "dev": folder / f"{self.devs[0][0]}.tsv"}

    def read(self, scores: Mapping[str, float]) -> float:
        """The STS-B score of GLUE is the mean of the two correlations."""
        if self.metric == "correlation":
            return statistics.fmean((scores["pearson"], scores["spearman"]))
        return super().read(scores)


def score(metric: str, gold: Sequence[float], guesses: Sequence[float]) -> float:
    """As scikit-learn and scipy have it."""
    if metric == "correlation":
        return float((spearmanr(gold, guesses)[0] + pearsonr(gold, guesses)[0]) / 2)
    if metric == "f1":
        return float(f1_score(gold, guesses))
    return float(matthews_corrcoef(gold, guesses) if metric == "matthews" else accuracy_score(gold, guesses))


ENTAILMENT = ("entailment", "not_entailment")

SST2 = Texts(name="sst2", task="glue:sst2", metric="accuracy", folder="glue/SST-2", columns=(0,), label=1, limit=1000)
STSB = Texts(
    name="stsb",
    task="glue:stsb",
    metric="correlation",
    folder="glue/STS-B",
    columns=(7, 8),
    label=9,
    words=(),
    limit=4000,
)
MRPC = Texts(name="mrpc", task="glue:mrpc", metric="f1", folder="glue/MRPC", columns=(3, 4), label=0, limit=1000)
COLA = Texts(
    name="cola",
    task="glue:cola",
    metric="matthews",
    folder="glue/CoLA",
    columns=(3,),
    label=1,
    header=False,
    limit=4000,
)
RTE = Texts(
    name="rte",
    task="glue:rte",
    metric="accuracy",
    folder="glue/RTE",
    columns=(1, 2),
    label=3,
    words=ENTAILMENT,
    limit=600,
)
WNLI = Texts(name="wnli", task="glue:wnli", metric="accuracy", folder="glue/WNLI", columns=(1, 2), label=3)
QQP = Texts(
    name="qqp",
    task="glue:qqp",
    metric="f1",
    folder="glue/QQP",
    columns=(3, 4),
    label=5,
    lr=1e-4,
    limit=1000,
    dev_limit=500,
)
QNLI = Texts(
    name="qnli",
    task="glue:qnli",
    metric="accuracy",
    folder="glue/QNLI",
    columns=(1, 2),
    label=3,
    words=ENTAILMENT,
    lr=1e-4,
    limit=1000,
    dev_limit=500,
)
MNLI = Texts(
    name="mnli",
    task="glue:mnli",
    metric="accuracy",
    further=("accuracy_mismatched",),
    folder="glue/MNLI",
    columns=(8, 9),
    label=-1,
    words=("entailment", "neutral", "contradiction"),
    devs=(("dev_matched", ""), ("dev_mismatched", "_mismatched")),
    lr=1e-4,
    dev_limit=2000,
)
NSMC = Texts(
    name="nsmc",
    task="",
    metric="accuracy",
    folder="korean",
    train="nsmc-train-20k",
    devs=(("nsmc-dev-2k", ""),),
    columns=(1,),
    label=2,
    lr=3e-4,
    limit=4000,
)
"""1,000 training examples, or more where a task needs them (STS-B, CoLA); RTE is slow."""
