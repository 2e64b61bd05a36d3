"""Small BERT models with each kind of heads, saved as folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.bert import Bert
from bertkit.model import Model
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.pretraining.task import PretrainingTask
from bertkit.task_types import RegressionTask, TextClassificationTask
from bertkit.text.wordpiece import WordPiece

CLASSES = TextClassificationTask(name="files:t.csv", metric="accuracy", labels=("dry", "wet", "odd"))
NUMBER = RegressionTask(name="files:t.csv", metric="pearson")
MEAN = replace(CLASSES, pair=True, pooling="mean", pair_head=True)


def pretraining(encoder: Encoder) -> Mapping[str, Objective]:
    assert isinstance(encoder, Bert)
    return PretrainingTask().build_objectives(encoder)


def masked_words(encoder: Encoder) -> Mapping[str, Objective]:
    return {"mlm": pretraining(encoder)["mlm"]}


def no_heads(encoder: Encoder) -> Mapping[str, Objective]:
    return {}


HEADS: dict[str, Callable[[Encoder], Mapping[str, Objective]]] = {
    "pretraining": pretraining,
    "masked words": masked_words,
    "next sentence": lambda encoder: {"nsp": NextSentencePrediction(encoder.hidden_size)},
    "classes": CLASSES.objectives,
    "number": NUMBER.objectives,
    "mean": MEAN.objectives,
    "none": no_heads,
}
TASKS = {"classes": CLASSES, "number": NUMBER, "mean": MEAN}


def save(folder: Path, encoder: Bert, tokenizer: WordPiece, heads: str = "classes") -> Model:
    model = Model(encoder, HEADS[heads](encoder))
    about = {"kind": "finetune", "task": TASKS[heads].record()} if heads in TASKS else {"kind": "pretrain"}
    save_model(folder, model, tokenizer, metadata=about)
    return model
