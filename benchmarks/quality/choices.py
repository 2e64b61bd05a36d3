"""CODAH, four-way completions in SWAG's columns."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMultipleChoice

from quality.loop import MAX_LENGTH, Comparison, Trainee, load_tokenizer, predict

ENDINGS = 4


@dataclass(frozen=True, kw_only=True)
class Choices(Comparison):
    """Every choice is encoded with the prompt, and the one with the highest score is the answer."""

    def path(self, split: str) -> Path:
        return Path(os.environ["BERTKIT_DATA"]) / "swag" / f"codah-{split}.csv"

    def rows(self, split: str) -> list[dict[str, str]]:
        with self.path(split).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def trainee(self) -> Trainee:
        model = AutoModelForMultipleChoice.from_pretrained(self.weights)
        cut = load_tokenizer(self.weights)
        dev = self.rows("val")

        def encode(rows: Sequence[dict[str, str]]) -> Any:
            prompts = [row["sent1"] for row in rows for _ in range(ENDINGS)]
            texts = [f"{row['sent2']} {row[f'ending{number}']}" for row in rows for number in range(ENDINGS)]
            flat = cut(prompts, texts, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            batch = {name: values.view(len(rows), ENDINGS, -1) for name, values in flat.items()}
            return {**batch, "labels": torch.tensor([int(row["label"]) for row in rows])}

        def evaluate() -> dict[str, float]:
            logits = predict(model, dev, encode, size=lambda row: len(row["sent1"]))
            right = [int(each.argmax()) == int(row["label"]) for row, each in zip(dev, logits, strict=True)]
            return {"accuracy": sum(right) / len(right)}

        return Trainee(model=model, rows=self.rows("train")[: self.limit], encode=encode, evaluate=evaluate)

    def files(self, folder: Path) -> dict[str, Any]:
        return {"train": [self.path("train")], "dev": self.path("val")}


CODAH = Choices(name="codah", task="swag", metric="accuracy", lr=1e-4, limit=800)
