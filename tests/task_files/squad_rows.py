"""Small files of questions in SQuAD's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bertkit.task_types import QuestionAnsweringTask, SpanExample

CONTEXT = "The mill stood by the river until the river took the mill."


def write(path: Path, *rows: dict[str, Any], context: str = CONTEXT) -> Path:
    content = {"version": "1.1", "data": [{"title": "", "paragraphs": [{"context": context, "qas": list(rows)}]}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def row(id: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    texts = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": id, "question": "What?", "answers": texts, **more}


def both(task: QuestionAnsweringTask, path: Path) -> tuple[list[SpanExample], list[SpanExample]]:
    """As train and as dev."""
    task = task.with_files(train=[path], dev=[path])
    return task.examples("train"), task.examples("dev")


def notes(task: QuestionAnsweringTask, path: Path) -> str:
    return "\n".join(task.with_files(train=[path], dev=[path]).reader.notes())
