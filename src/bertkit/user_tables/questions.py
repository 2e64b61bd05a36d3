"""A user's own questions about contexts, as SQuAD has them or as a table."""

from __future__ import annotations

from dataclasses import replace

from bertkit.errors import count_of
from bertkit.task_files.squad_files import COLUMNS, has_question_columns, is_squad
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
    contexts = count_of(len({example.context for example in rows["train"]}), "context")
    questions = count_of(len(rows["train"]), "question")
    return Guess(task=task, sentence=f"{questions} about {contexts}, {without:,} of them without an answer")
