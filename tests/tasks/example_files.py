"""Small files in the layout of any task: thirteen examples per split, whatever the type of the task."""

from __future__ import annotations

import json
from pathlib import Path

from bertkit.formats.table_formats import Format
from bertkit.task_types import FileTask, QuestionAnsweringTask, RegressionTask, Split, TextClassificationTask
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.multiple_choice import MultipleChoiceTask
from bertkit.task_types.tagging import TaggingTask

ROWS = 13
WORDS = ["seven", "wide", "rivers", "ran", "slowly", "past", "the", "old", "stone", "mill", "before", "dawn"]

_DELIMITERS = {"tsv": "\t", "csv": ","}


def bind_to_small_files(task: FileTask, folder: Path) -> FileTask:
    """``task`` with files in ``folder`` for each of its splits."""
    for split in task.files.splits.values():
        path = folder / split.files[0]
        if isinstance(task, QuestionAnsweringTask):
            _write_squad(task, path)
        elif isinstance(task, TaggingTask):
            _write_conll(task, path)
        elif isinstance(task, MultipleChoiceTask):
            _write_table(path, split, [_choice_cells(task, split, number) for number in range(ROWS)])
        else:
            _write_table(path, split, [_text_cells(task, split, number) for number in range(ROWS)])
    return task.at(folder)


def label_cell(task: FileTask, number: int) -> str:
    """The label of row ``number``, as the files of a text task write it."""
    if isinstance(task, RegressionTask):
        lowest, highest = task.numbers.lowest or 0.0, task.numbers.highest or 9.0
        return f"{lowest + (highest - lowest) * (number % 5) / 5 + 0.25:.3f}"
    assert isinstance(task, TextClassificationTask | MultiLabelTask)
    spellings = task.spellings or task.labels
    return spellings[number % len(spellings)]


def _text_cells(task: FileTask, split: Split, number: int) -> dict[str | None, str]:
    columns = split.columns
    return {
        columns.id: f"row-{number}",
        columns.first: f"{' '.join(WORDS[number % 5 :])} {number}",
        columns.second: f"{WORDS[number % 7]} 'twas {number}",
        columns.label: label_cell(task, number),
    }


def _choice_cells(task: MultipleChoiceTask, split: Split, number: int) -> dict[str | None, str]:
    columns = split.columns
    choices: dict[str | None, str] = {
        name: f"{WORDS[(number + place) % 12]} {place}" for place, name in enumerate(task.choices)
    }
    label = {"number": number % len(task.choices), "number from 1": 1 + number % len(task.choices)}
    right = task.choices[number % len(task.choices)]
    other = choices[right] if task.spelling == "text" else chr(ord("A") + number % len(task.choices))
    return {
        columns.id: f"row-{number}",
        columns.first: f"{' '.join(WORDS[number % 5 :])} {number}",
        columns.second: "and then",
        columns.label: str(label.get(task.spelling, other)),
        **choices,
    }


def _write_table(path: Path, split: Split, rows: list[dict[str | None, str]]) -> None:
    delimiter = _DELIMITERS[path.name.removesuffix(".gz").rpartition(".")[2]]
    form = split.form or Format(delimiter=delimiter)
    names = form.names or tuple(name for name in rows[0] if name is not None)
    lines = [] if form.names else [names]
    lines += [tuple(row.get(name, "-") for name in names) for row in rows]
    path.write_text("".join(form.delimiter.join(line) + "\n" for line in lines), encoding="utf-8")


def _write_squad(task: QuestionAnsweringTask, path: Path) -> None:
    questions = []
    for number in range(ROWS):
        answer = WORDS[number % 6]
        impossible = task.null and number % 3 == 0
        context = " ".join(WORDS)
        answers = [] if impossible else [{"text": answer, "answer_start": context.index(answer)}]
        question = {"id": f"row-{number}", "question": f"what is {number}?", "answers": answers}
        questions.append(question | ({"is_impossible": impossible} if task.null else {}))
    data = [{"paragraphs": [{"context": " ".join(WORDS), "qas": questions}]}]
    path.write_text(json.dumps({"version": "1", "data": data}), encoding="utf-8")


def _write_conll(task: TaggingTask, path: Path) -> None:
    begins = [tag for tag in task.labels if tag.startswith("B-")]
    lines = []
    for number in range(ROWS):
        tag = begins[number % len(begins)]
        lines += [f"{word} -X- -X- O" for word in WORDS[number % 5 : number % 5 + 3]]
        lines += [f"name{number} -X- -X- {tag}", f"more{number} -X- -X- I-{tag[2:]}", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
