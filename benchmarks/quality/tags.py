"""CoNLL-2003: a tag for every word, predicted from its first subword, without document context."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForTokenClassification

from bertkit.metrics.entities import convert, score_entities
from quality.loop import MAX_LENGTH, Comparison, Trainee, load_tokenizer, predict

LABELS = ("O", "B-LOC", "I-LOC", "B-MISC", "I-MISC", "B-ORG", "I-ORG", "B-PER", "I-PER")
IGNORE = -100


class Row(NamedTuple):
    """Words and their tags in IOB2."""

    words: list[str]
    tags: list[str]


@dataclass(frozen=True, kw_only=True)
class Tags(Comparison):
    """Both systems are scored by ``bertkit.metrics.entities``, which is tested against ``conlleval``."""

    home: str = "conll2003"

    @property
    def folder(self) -> Path:
        return Path(os.environ["BERTKIT_DATA"]) / self.home

    def rows(self, file: str) -> list[Row]:
        blocks = (self.folder / file).read_text(encoding="utf-8").split("\n\n")
        tables = [[line.split() for line in block.splitlines() if line.strip()] for block in blocks]
        sentences = [rows for rows in tables if rows and rows[0][0] != "-DOCSTART-"]
        return [Row([row[0] for row in rows], convert([row[-1] for row in rows], "iob2")) for rows in sentences]

    def trainee(self) -> Trainee:
        model = AutoModelForTokenClassification.from_pretrained(self.weights, num_labels=len(LABELS))
        dev = self.rows("eng.testa")

        def encode(rows: Sequence[Row]) -> Any:
            batch = self.split([row.words for row in rows])
            labels = torch.full(batch["input_ids"].shape, IGNORE)
            for number, row in enumerate(rows):
                for word, index in first_tokens(batch.word_ids(number)).items():
                    labels[number, index] = LABELS.index(row.tags[word])
            return {**batch, "labels": labels}

        def evaluate() -> dict[str, float]:
            predicted = []
            for row, logits in zip(dev, predict(model, dev, encode, size=lambda row: len(row.words)), strict=True):
                tags = ["O"] * len(row.words)
                for word, index in first_tokens(self.split([row.words]).word_ids(0)).items():
                    tags[word] = LABELS[int(logits[index].argmax())]
                predicted.append(tags)
            return {"f1": score_entities([row.tags for row in dev], predicted)[0].f1}

        return Trainee(model=model, rows=self.rows("eng.train")[: self.limit], encode=encode, evaluate=evaluate)

    def split(self, sentences: list[list[str]]) -> Any:
        """Encode lists of words as tokens."""
        cut = load_tokenizer(self.weights)
        return cut(
            sentences,
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=MAX_LENGTH,
            return_tensors="pt",
        )

    def files(self, folder: Path) -> dict[str, Any]:
        return {"data": self.folder}


def first_tokens(words: Sequence[int | None]) -> dict[int, int]:
    """Word -> index of its first token."""
    found: dict[int, int] = {}
    for index, word in enumerate(words):
        if word is not None:
            found.setdefault(word, index)
    return found


CONLL = Tags(name="conll2003", task="conll2003", metric="f1", lr=1e-4, limit=2000)
