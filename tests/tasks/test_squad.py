"""SQuAD and KorQuAD."""

from __future__ import annotations

import pytest

from bertkit import lookup as names
from bertkit.task_types import QuestionAnsweringTask

TASKS: dict[str, QuestionAnsweringTask] = names.values("tasks", QuestionAnsweringTask)


@pytest.fixture(params=TASKS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_name_is_what_the_user_types(name: str) -> None:
    assert TASKS[name].name == name
    assert TASKS[name].about.endswith(".")
