"""Files of questions with faults: repaired and counted, left out of training and counted, or refused.

Nothing that is wrong with a question takes it out of an evaluation.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tests.task_files.squad_rows import CONTEXT, both, notes, row, write

from bertkit.errors import BertkitError
from bertkit.tasks.squad import v1, v2
from bertkit.text.wordpiece import WordPiece, train


@pytest.mark.parametrize("answer", [("river", 0), ("windmill", 4), ("", 0), (" ", 3)])
def test_an_answer_without_a_known_place_is_evaluated_and_not_trained_on(
    tmp_path: Path, answer: tuple[str, int]
) -> None:
    path = write(tmp_path / "t.json", row("a", answer), row("b", ("stood", 9)))
    learnt, asked = both(v1, path)
    assert [each.id for each in learnt] == ["b"]
    assert [each.texts for each in asked] == [(answer[0],), ("stood",)]
    assert "1 answer of train is not in the context, or more than once" in notes(v1, path)


def test_an_empty_list_of_answers_in_1_1(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", row("a"), row("b", ("stood", 9)))
    learnt, asked = both(v1, path)
    assert [each.id for each in learnt] == ["b"]
    assert [each.id for each in asked] == ["a", "b"]
    assert "1 question of dev has an empty list of answers and is not marked as impossible" in notes(v1, path)


def test_a_question_marked_impossible_with_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", row("a", ("stood", 9), is_impossible=True), row("b", is_impossible=True))
    learnt, asked = both(v2, path)
    assert [each.id for each in learnt] == ["b"]
    assert [each.texts for each in asked] == [("stood",), ()]
    assert "1 question of train is marked as impossible and has answers" in notes(v2, path)


def test_a_file_of_2_0_gives_a_task_of_1_1_its_answerable_questions(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", row("a", ("stood", 9)), row("b", is_impossible=True), row("c", ("by", 15)))
    learnt, asked = both(v1, path)
    assert [each.id for each in learnt] == [each.id for each in asked] == ["a", "c"]
    assert "1 question of dev has no answer and is left out" in notes(v1, path)


def test_an_empty_context_is_predicted_to_have_no_answer(tmp_path: Path, words: WordPiece) -> None:
    path = write(tmp_path / "t.json", row("a", ("stood", 9)), context=" ")
    learnt, (asked,) = both(v1, path)
    assert learnt == []
    assert "1 question of dev has an empty context" in notes(v1, path)
    (feature,) = v1.encode(asked, words)
    sure = dict.fromkeys(("start", "end"), feature.input_ids * 0.0)
    assert v1.decode(asked, [feature], [sure]).text == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [', r"t\.json, line 1, column 11: not JSON"),
        ("[1, 2]", r"t\.json: item 1 of the list is not a JSON object"),
        ('{"dota": []}', r't\.json has no "data"\. Did you mean "dota"\?'),
        ('{"data": [{"paragraphs": {}}]}', r't\.json, data\[0\]: "paragraphs" is not a list'),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r'data\[0\]\.paragraphs\[0\] has no "context"'),
        ('{"data": [{"paragraphs": [{"context": 7, "qas": []}]}]}', r'"context" is 7, not a text'),
        (
            '{"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "a", "quastion": "?"}]}]}]}',
            r'paragraphs\[0\]\.qas\[0\] has no "question"\. Did you mean "quastion"\?',
        ),
        (
            '{"data": [{"paragraphs": [{"context": "x", "qas": [{"id": "a", "question": "?", '
            '"answers": [{"text": "x", "answer_start": "0"}]}]}]}]}',
            r"qas\[0\]\.answers\[0\]: \"answer_start\" is '0', not a whole number",
        ),
    ],
)
def test_a_file_in_another_format_is_an_error_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.json").write_text(content, encoding="utf-8")
    with pytest.raises(BertkitError, match=message) as raised:
        v1.with_files(dev=[tmp_path / "t.json"]).examples("dev")
    assert raised.value.exit_code == 3
    assert "\n" not in str(raised.value)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b'{"data": "\xff"}')
    with pytest.raises(BertkitError, match=r"t\.json is not UTF-8 \(byte 11\)"):
        v1.with_files(dev=[tmp_path / "t.json"]).examples("dev")


@pytest.fixture(scope="module")
def words() -> WordPiece:
    return train([CONTEXT] * 3, vocab_size=60)


def test_a_context_of_a_hundred_thousand_words(tmp_path: Path, words: WordPiece) -> None:
    context = " ".join(["the mill stood by the river"] * 16_667) + " until"
    path = write(tmp_path / "t.json", row("a", ("until", len(context) - 5)), context=context)
    (example,), _ = both(v1, path)
    began = time.process_time()
    tracemalloc.start()
    features = v1.encode(example, words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(features) > 700
    starts = [int(np.asarray(feature.labels["span"])[0]) for feature in features]
    assert starts[-1] > 0
    assert not any(starts[:-3])
    outputs = [dict.fromkeys(("start", "end"), feature.input_ids * 0.0) for feature in features]
    assert v1.decode(example, features, outputs).text
    assert time.process_time() - began < 20
    assert peak < 200e6
