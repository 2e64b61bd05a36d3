from __future__ import annotations

from dataclasses import replace

import pytest

from bertkit.task_files.squad_files import GoldAnswer
from bertkit.task_types import QuestionAnsweringTask, SpanExample
from bertkit.task_types.span_baselines import predict_by_overlap

CONTEXT = "The river is long. The first bridge of the town was built by Telford. The town has a market."


def question(text: str, answer: str = "", context: str = CONTEXT) -> SpanExample:
    answers = (GoldAnswer(answer, context.index(answer)),) if answer else ()
    return SpanExample("1", text, context, answers, impossible=not answer)


TRAIN = [
    question("Who painted the house?", "Ada", "The house of the mayor was painted by Ada."),
    question("Who wrote the long letter?", "Grace", "The letter was written by Grace. The town was long."),
]


def test_the_answer_is_a_rare_run_beside_the_words_of_the_question() -> None:
    (found,) = predict_by_overlap(TRAIN, [question("Who built the bridge?")])
    assert found.span is not None
    assert CONTEXT[found.span.start : found.span.end] == found.text
    assert found.text in ("Telford", "first")  # words that train does not have, in the sentence about the bridge


def test_rarer_shared_words_decide_on_the_sentence() -> None:
    (found,) = predict_by_overlap(TRAIN, [question("The of the was by market has?")])
    assert found.text in CONTEXT[CONTEXT.index("The town has") :]


def test_a_context_without_words_has_no_answer() -> None:
    (found,) = predict_by_overlap(TRAIN, [question("Who?", context="...")])
    assert (found.text, found.null_odds) == ("", 1.0)


def test_a_sentence_with_only_words_of_the_question_is_the_answer() -> None:
    (found,) = predict_by_overlap(TRAIN, [question("red house?", context="Red house.")])
    assert found.text == "Red house"


@pytest.mark.parametrize("null", [False, True])
def test_no_answer_is_predicted_where_train_says_so(null: bool) -> None:
    task = replace(QuestionAnsweringTask(name="q", rules="v2" if null else "v1"), null=null)
    answerable = [question("Red?", "house", "Red house."), question("Blue?", "door", "Blue door.")]
    unanswerable = [question(f"Why do {animal} sleep?") for animal in ("cats", "dogs", "birds")]
    dev = [question("How do fish sleep?"), question("Green?", "tree", "Green tree.")]
    found = {name: predict([*answerable, *unanswerable], dev) for name, predict in task.baselines().items()}
    overlap = found["overlap with the question"]
    if null:
        assert [each.text for each in found["most frequent answer"]] == ["", ""]
        assert [each.text for each in overlap] == ["", "tree"]
    else:
        assert list(found) == ["overlap with the question"]
        assert all(each.text for each in overlap)
