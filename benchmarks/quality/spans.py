"""SQuAD 1.1: windows of 384 tokens every 128, answers of at most 30 tokens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForQuestionAnswering

from bertkit.metrics.squad import score_all
from quality.loop import Comparison, Trainee, load_tokenizer, predict

MAX_LENGTH, STRIDE, MAX_QUERY, LONGEST = 384, 128, 64, 30


class Question(NamedTuple):
    """A question as in the file."""

    id: str
    question: str
    context: str
    answers: list[dict[str, Any]]


class Window(NamedTuple):
    """``context`` is the range of the context's tokens, ``offsets`` is the characters of each token; 0 is [CLS]."""

    question: Question
    input_ids: list[int]
    segments: list[int]
    context: range
    offsets: list[tuple[int, int]]
    target: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Spans(Comparison):
    """The first questions of one file in SQuAD's layout, scored on the first answerable ones of another.

    Hugging Face's system has no maximum-context rule, like its example script.
    """

    train: str
    dev: str

    def questions(self, file: str, limit: int | None) -> list[Question]:
        return list(islice(read_answerable(Path(os.environ["BERTKIT_DATA"]) / "squad" / file), limit))

    def trainee(self) -> Trainee:
        model = AutoModelForQuestionAnswering.from_pretrained(self.weights)
        tokenizer = load_tokenizer(self.weights)
        questions = self.questions(self.dev, self.dev_limit)
        windows = [window for question in questions for window in cut(question, tokenizer)]

        def evaluate() -> dict[str, float]:
            scores = predict(model, windows, encode, size=lambda window: len(window.input_ids), read=read_scores)
            best: dict[str, tuple[float, str]] = {}
            for window, each in zip(windows, scores, strict=True):
                id = window.question.id
                best[id] = max(best.get(id, (float("-inf"), "")), find_answer(window, each))
            gold = {question.id: [answer["text"] for answer in question.answers] for question in questions}
            found = score_all(gold, {id: text for id, (_, text) in best.items()}, "v1")
            return {name: value / 100 for name, value in found.items()}

        train = [window for question in self.questions(self.train, self.limit) for window in cut(question, tokenizer)]
        return Trainee(model=model, rows=train, encode=encode, evaluate=evaluate)

    def files(self, folder: Path) -> dict[str, Any]:
        paths = []
        for file, limit in ((self.train, self.limit), (self.dev, self.dev_limit)):
            records = [question._asdict() for question in self.questions(file, limit)]
            data = [{"paragraphs": [{"context": each.pop("context"), "qas": [each]}]} for each in records]
            paths.append(folder / file)
            paths[-1].write_text(json.dumps({"data": data}), encoding="utf-8")
        return {"train": paths[:1], "dev": paths[1]}


def read_answerable(path: Path) -> Iterator[Question]:
    """The questions of a file that have an answer."""
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for record in paragraph["qas"]:
                if record["answers"]:
                    yield Question(record["id"], record["question"], paragraph["context"], record["answers"])


def cut(question: Question, tokenizer: Any) -> list[Window]:
    """The windows of a question; the target of a window without the complete answer is [CLS]."""
    query = tokenizer(question.question, add_special_tokens=False)["input_ids"][:MAX_QUERY]
    text = tokenizer(question.context, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = text["input_ids"], text["offset_mapping"]
    capacity, before = MAX_LENGTH - len(query) - 3, len(query) + 2
    first = question.answers[0]["answer_start"]
    last = first + len(question.answers[0]["text"])
    inside = [index for index, (start, end) in enumerate(offsets) if start < last and end > first]
    windows = []
    for start in range(0, max(1, len(ids) - capacity + STRIDE), STRIDE):
        part = ids[start : start + capacity]
        found = inside and start <= inside[0] and inside[-1] < start + len(part)
        target = (inside[0] - start + before, inside[-1] - start + before) if found else (0, 0)
        windows.append(
            Window(
                question,
                [tokenizer.cls_token_id, *query, tokenizer.sep_token_id, *part, tokenizer.sep_token_id],
                [0] * before + [1] * (len(part) + 1),
                range(before, before + len(part)),
                [(0, 0)] * before + offsets[start : start + capacity],
                target,
            )
        )
    return windows


def encode(windows: Sequence[Window]) -> Any:
    """A padded batch."""
    width = max(len(window.input_ids) for window in windows)
    batch = torch.zeros(3, len(windows), width, dtype=torch.long)
    for number, window in enumerate(windows):
        size = len(window.input_ids)
        batch[0, number, :size] = torch.tensor(window.input_ids)
        batch[1, number, :size] = torch.tensor(window.segments)
        batch[2, number, :size] = 1
    targets = torch.tensor([window.target for window in windows])
    return {
        "input_ids": batch[0],
        "token_type_ids": batch[1],
        "attention_mask": batch[2],
        "start_positions": targets[:, 0],
        "end_positions": targets[:, 1],
    }


def read_scores(output: Any) -> torch.Tensor:
    """Start and end logits: (windows, 2, tokens)."""
    return torch.stack([output.start_logits, output.end_logits], dim=1)


def find_answer(window: Window, scores: torch.Tensor) -> tuple[float, str]:
    """The best span of the context and its score."""
    start, end = scores[:, window.context.start : window.context.stop]
    spans = start[:, None] + end[None, :]
    allowed = torch.ones_like(spans).triu().tril(LONGEST - 1).bool()
    best = int(spans.masked_fill(~allowed, float("-inf")).argmax())
    first, last = (window.context.start + index for index in divmod(best, len(end)))
    text = window.question.context[window.offsets[first][0] : window.offsets[last][1]]
    return float(start[best // len(end)] + end[best % len(end)]), text


SQUAD = Spans(
    name="squad-v1",
    task="squad:v1",
    metric="f1",
    further=("exact_match",),
    lr=1e-4,
    limit=600,
    dev_limit=200,
    train="squadshifts-new_wiki-v1.1.json",
    dev="squad-dev-half-v2.0.json",
)
