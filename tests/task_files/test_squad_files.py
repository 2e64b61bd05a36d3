"""Questions in SQuAD's format, and faults of single questions."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.task_files.squad_rows import CONTEXT, both, notes, row, write

from bertkit.errors import BertkitError
from bertkit.task_files.squad_files import is_squad
from bertkit.task_types import SpanExample
from bertkit.tasks.squad import v1
from bertkit.user_tables.guess import guess

pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_published_file_is_one_line_of_any_length(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    words = random.Random(0)  # a file that unpacks to 30 times its length is refused
    rows = [row(words.randbytes(4_000).hex(), ("mill", 4)) for _ in range(2_100)]
    path = write(tmp_path / "t.json", *rows)
    assert path.stat().st_size > 16_000_000
    path = path.rename(tmp_path / ("t.json" if compress is bytes else "t.json.gz"))
    path.write_bytes(compress(path.read_bytes()))
    assert is_squad(path)
    assert guess(path).sentence.startswith("2,100 questions about 1 context")


def write_rows_of_datasets(path: Path, *answers: object) -> Path:
    """Rows as Hugging Face's ``datasets`` has SQuAD."""
    rows = [
        {"id": f"q{number}", "title": "Mills", "context": CONTEXT, "question": "What?", "answers": each}
        for number, each in enumerate(answers)
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def test_the_rows_of_datasets_are_questions(tmp_path: Path) -> None:
    two = {"text": ["mill", "the river"], "answer_start": [4, 18]}
    path = write_rows_of_datasets(tmp_path / "t.jsonl", two, {"text": [], "answer_start": []})
    found = guess(path)
    assert found.sentence == "2 questions about 1 context, 1 of them without an answer"
    first, second = found.task.reader.rows("train")
    assert isinstance(first, SpanExample) and isinstance(second, SpanExample)
    assert (first.id, first.answers) == ("q0", (("mill", 4), ("the river", 18)))
    assert second.answers == () and second.impossible


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("mill", 't.jsonl, line 1: "answers" is mill, not an object'),
        (None, 't.jsonl, line 1: "answers" is empty, not an object'),
        ({"text": ["mill"]}, 't.jsonl, line 1, answers has no "answer_start"'),
        ({"text": ["mill"], "answer_start": []}, "t.jsonl, line 1: answers has 1 texts and 0 places"),
        ({"text": ["mill"], "answer_start": ["4"]}, "answer_start\" is '4', not a whole number"),
        ({"text": [4], "answer_start": [4]}, '"text" is 4, not a text'),
    ],
)
def test_answers_of_another_shape_are_an_error(tmp_path: Path, answers: object, message: str) -> None:
    with pytest.raises(BertkitError, match=re.escape(message)):
        guess(write_rows_of_datasets(tmp_path / "t.jsonl", answers))


@pytest.mark.parametrize("field", ["question", "context", "answer"])
def test_a_list_in_a_table_is_no_text(tmp_path: Path, field: str) -> None:
    record = {"question": "who?", "context": "the miller", "answer": "miller"} | {field: ["a", "b"]}
    (tmp_path / "t.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=rf't\.jsonl, line 1: "{field}" is .*, not a text'):
        guess(tmp_path / "t.jsonl")


def test_other_json_is_not_in_squads_format(tmp_path: Path) -> None:
    for number, content in enumerate(('[{"paragraphs": 1}]', '{"text": "a"}', "")):
        path = tmp_path / f"{number}.json"
        path.write_text(content)
        assert not is_squad(path)


@pytest.mark.parametrize("start", [0, 20, -1, 999, 9])
def test_a_wrong_offset_is_corrected_if_the_text_occurs_once(tmp_path: Path, start: int) -> None:
    path = write(tmp_path / "t.json", row("a", ("stood", start)))
    learnt, asked = both(v1, path)
    assert learnt == asked
    assert learnt[0].target is not None
    assert learnt[0].target.start == CONTEXT.index("stood")
    moved = "1 answer of train was not where the file says and was moved to the only place"
    found = "1 answer of train has no place in the file and was found where the text occurs, once"
    assert (moved in notes(v1, path), found in notes(v1, path)) == (start not in (9, -1), start == -1)


def test_answers_without_a_place_are_counted_whether_they_are_found_or_not(tmp_path: Path) -> None:
    answers = ("stood", "STOOD", "the", "")
    rows = [{"question": "What?", "context": CONTEXT, "answer": answer} for answer in answers]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    task = guess(tmp_path / "t.jsonl").task
    assert CONTEXT.count("the") > 1
    assert len(task.examples("train")) + len(task.examples("dev")) == 2
    found = " ".join(task.reader.notes())
    assert "1 answer of train has no place in the file and was found where the text occurs, once" in found
    assert "2 answers of train are not in the context, or more than once" in found


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv"])
def test_pandas_writes_places_as_floats(tmp_path: Path, name: str) -> None:
    rows = [f'"q","{CONTEXT}","stood",9.0', f'"q","{CONTEXT}","",']
    (tmp_path / "t.csv").write_text("\n".join(["question,context,answer,answer_start", *rows]), encoding="utf-8")
    record = {"question": "q", "context": CONTEXT, "answers": [{"text": "stood", "answer_start": 9.0}]}
    (tmp_path / "t.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    first, *_ = guess(tmp_path / name).task.reader.rows("train")
    assert first.target == ("stood", 9)


def test_the_first_answer_in_the_context_is_the_target(tmp_path: Path) -> None:
    (learnt,), (asked,) = both(v1, write(tmp_path / "t.json", row("a", ("windmill", 4), ("river", 22))))
    assert learnt.target == ("river", 22)
    assert asked.texts == ("windmill", "river")


def test_questions_without_a_list_of_answers_are_counted(tmp_path: Path) -> None:
    unlabelled = row("b")
    del unlabelled["answers"]
    path = write(tmp_path / "t.json", row("a", ("stood", 9)), unlabelled)
    learnt, asked = both(v1, path)
    assert [each.id for each in learnt] == [each.id for each in asked] == ["a"]
    for split in ("train", "dev"):
        assert f"1 question of {split} has no list of answers and is left out" in notes(v1, path)
    assert v1.reader.inspect_input(path) == (2, []), "what is only asked needs no answers"


def test_repeated_ids_are_made_unique(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", *[row(id, ("stood", 9)) for id in ("a", "a", "a#2", "a", "b")])
    learnt, asked = both(v1, path)
    assert len({each.id for each in asked}) == len(asked) == len(learnt) == 5
    assert [each.id for each in asked][:2] == ["a", "a#2"]
    assert " of dev have the id of another one" in notes(v1, path)
    assert [each.id for each in v1.reader.read(path)] == [each.id for each in asked]
