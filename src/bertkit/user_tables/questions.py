"""A user's own questions about contexts, as SQuAD has them or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bertkit.errors import count_of, data_error
from bertkit.task_files.squad_files import COLUMNS, SpanExample, has_question_columns, is_squad
from bertkit.task_types.question_answering import QuestionAnsweringTask
from bertkit.user_tables.files import Guess, UserFiles


def have_questions(files: UserFiles) -> bool:
    """Whether the files have questions and contexts."""
    return is_squad(files.first) or has_question_columns(files.table)


def guess_questions(files: UserFiles) -> Guess:
    """The task of questions; if some have no answer, the model may predict that there is none."""
    task = QuestionAnsweringTask(name=files.name, files=files.read_with(COLUMNS), null=True, heldout=files.heldout)
    rows = {split: list(task.reader.rows(split)) for split in files.paths}
    without = sum(example.answers == () and example.impossible for example in rows["train"])
    task = replace(task, null=without > 0, rules="v2" if without else "v1")
    _check_answers(files, rows["train"])
    contexts = count_of(len({example.context for example in rows["train"]}), "context")
    questions = count_of(len(rows["train"]), "question")
    return Guess(task=task, sentence=f"{questions} about {contexts}, {without:,} of them without an answer")


def _check_answers(files: UserFiles, rows: Sequence[SpanExample]) -> None:
    """Raise a data error if there are answers and none is found in its context, such as yes and no."""
    if not any(row.answers for row in rows) or any(row.target or row.impossible for row in rows):
        return
    if any(answer.text in row.context for row in rows for answer in row.answers or ()):
        raise data_error(
            f"{files.first}: each answer occurs more than once in its context, or never. Add a column answer_start "
            "with the place of its first character, counted from 0."
        )
    advice = (
        "Give answers that are copied from their contexts, character by character."
        if is_squad(files.first)
        else "To predict answers such as yes and no as classes: --text question --pair context --label answer"
    )
    raise data_error(f"{files.first}: no answer is a part of its context. {advice}")
