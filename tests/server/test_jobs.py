from __future__ import annotations

from bertkit.server.jobs import Job, Usage
from bertkit.server.models import EmbedOperation, TaskInput
from bertkit.task_types import MultipleChoiceTask, SpanExample, TextClassificationTask, TextExample
from bertkit.task_types.choice_reader import ChoiceExample


def test_the_cost_grows_with_the_characters() -> None:
    operation = EmbedOperation.__new__(EmbedOperation)
    short, long = (Job(operation, texts, 0.0) for texts in (["a"], ["a" * 300, "b"]))
    assert 0 < short.cost < 5
    assert 100 < long.cost < 110


def test_a_chinese_character_is_a_token() -> None:
    operation = EmbedOperation.__new__(EmbedOperation)
    job = Job(operation, ["\u5317\u4eac" * 50, "\ud800"], 0.0)
    assert 100 <= job.cost < 110
    assert job.characters == 101


def test_the_cost_of_an_example_is_that_of_its_texts() -> None:
    operation = EmbedOperation.__new__(EmbedOperation)
    task = TextClassificationTask(name="t", metric="accuracy", labels=("a", "b"), pair=True)
    example = TaskInput(task, TextExample("0", "a" * 150, "b" * 150))
    assert Job(operation, [example], 0.0).cost == Job(operation, ["a" * 300], 0.0).cost
    question = TaskInput(task, SpanExample("0", "a" * 100, "b" * 200))
    assert Job(operation, [question], 0.0).cost == Job(operation, ["a" * 300], 0.0).cost


def test_a_prompt_counts_for_each_of_its_choices() -> None:
    task = MultipleChoiceTask(name="t", choices=("a", "b", "c"), spelling="number")
    example = TaskInput(task, ChoiceExample("0", "p" * 100, ("x" * 10, "y" * 20, "z" * 30)))
    job = Job(EmbedOperation.__new__(EmbedOperation), [example], 0.0)
    assert 3 * 100 + 60 <= job.characters <= 3 * 100 + 60 + 3
    assert job.cost >= 120


def test_times_of_parts_that_run_side_by_side_are_not_added_up() -> None:
    usage = Usage(inputs=1, tokens=5, queue_seconds=0.5, inference_seconds=0.25)
    usage.add(Usage(inputs=2, tokens=7, queue_seconds=0.25, inference_seconds=1.0))
    assert usage == Usage(inputs=3, tokens=12, queue_seconds=0.5, inference_seconds=1.0)
