"""Questions from files and lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.task_types.small_questions import ANSWERS, CONTEXT, row, squad
from tests.task_types.small_questions import name as name
from tests.task_types.small_questions import task as task

from bertkit.errors import BertkitError
from bertkit.task_files.files import TaskFiles
from bertkit.task_types import (
    QuestionAnsweringTask,
    SpanExample,
)
from bertkit.task_types.question_reader import QuestionReader
from bertkit.user_tables.guess import guess


def test_questions_about_one_context_are_held_out_together(tmp_path: Path) -> None:
    content = squad([])
    content["data"][0]["paragraphs"] = [
        {"context": f"{CONTEXT} {n}", "qas": [row(7 * n + k, ANSWERS[k % 5]) for k in range(7)]} for n in range(20)
    ]
    (tmp_path / "t.json").write_text(json.dumps(content), encoding="utf-8")
    task = guess(tmp_path / "t.json").task
    train, dev = ({example.context for example in task.examples(split)} for split in ("train", "dev"))
    assert (len(train), len(dev)) == (18, 2)
    assert not train & dev
    assert any("14 of 140 questions are held out" in note for note in task.reader.notes())


def test_only_questions_with_known_answers_are_counted_as_held_out(tmp_path: Path) -> None:
    answers = [None] * 5 + [str(n) for n in range(5, 20)]
    rows = [
        {"question": f"what is {n}", "context": f"{n} is a number.", "answer": answer}
        for n, answer in enumerate(answers)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    task = guess(tmp_path / "t.jsonl").task
    counts = [len(task.examples(split)) for split in ("dev", "train")]
    assert any(f"{counts[0]} of {sum(counts)} questions are held out" in note for note in task.reader.notes())


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_questions_are_read_from_json_lines_of_any_suffix(tmp_path: Path, suffix: str) -> None:
    row = {"question": "which?", "context": "the second", "answer": "second"}
    (tmp_path / f"t{suffix}").write_text(f"{json.dumps(row)}\n" * 20, encoding="utf-8")
    assert len(list(guess(tmp_path / f"t{suffix}").task.reader.rows("train"))) == 20


TASK = QuestionAnsweringTask(name="files:t.json", null=True, rules="v2", max_length=23, stride=5)


def test_a_table_of_questions_has_columns_to_keep(tmp_path: Path) -> None:
    reader = QuestionReader(name="t", files=TaskFiles(), null=False)
    table = tmp_path / "q.csv"
    table.write_text("question,context,author\nwho,the mill,me\n")
    opened = reader.open_table(table)
    assert opened is not None
    assert opened[0].columns == ("question", "context", "author")
    (tmp_path / "q.json").write_text('{"data": []}')
    assert reader.open_table(tmp_path / "q.json") is None


def test_lines_of_a_stream() -> None:
    for line in ('{"id": "7", "question": "who?", "context": "the miller"}', "who?\tthe miller"):
        example = TASK.reader.read_line("7", line)
        assert example == SpanExample("7", "who?", "the miller")
    with pytest.raises(BertkitError, match="line 3: no tab"):
        TASK.reader.read_line("3", "who? the miller")
    with pytest.raises(BertkitError, match='line 3: not a JSON object with the texts "question" and "context"'):
        TASK.reader.read_line("3", '{"question": "who?"}')
    with pytest.raises(BertkitError, match='line 3: not a JSON object with the texts "question" and "context"'):
        TASK.reader.read_line("3", '{"question": "who?", "context": null}')
    for line in ('{"a": ' * 100_000, '{"id": ' + "9" * 5000 + "}", '{"question"'):
        with pytest.raises(BertkitError, match="line 3 is not JSON that can be read: "):
            TASK.reader.read_line("3", line)
