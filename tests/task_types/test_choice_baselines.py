from __future__ import annotations

from dataclasses import replace

from bertkit.task_types import ChoiceExample, MultipleChoiceTask, make_example

TASK = MultipleChoiceTask(name="endings")


def example(prompt: str, *choices: str) -> ChoiceExample:
    return make_example("1", prompt, choices, where="here")


TRAIN = [example("the river floods", "music plays", "a river"), example("a garden in winter", "gardens", "x", "y")]


def test_the_most_similar_choice_is_taken() -> None:
    dev = [
        example("winter came early", "the market", "a wintry day", "seven letters"),
        example("she plays music", "musical notes", "a stone"),
        example("?", "one", "two"),
    ]
    predict = TASK.baselines()["TF-IDF similarity to the prompt"]
    assert [each.label for each in predict(TRAIN, dev)] == [1, 0, 0]


def test_the_place_that_is_right_most_often_is_taken() -> None:
    """A network that has learned nothing is as good: on CODAH 26 % are right, and 18 % by similarity."""
    train = [replace(each, label=label) for each, label in zip(TRAIN * 2, (1, 2, 1, 2), strict=True)]
    train.append(replace(TRAIN[1], label=2))
    dev = [example("she plays music", "notes", "a stone", "rain"), example("?", "one", "two")]
    found = TASK.baselines()["most frequent answer"](train, dev)
    assert [(each.label, each.text, each.scores) for each in found] == [
        (2, "rain", (0.0, 0.0, 1.0)),
        (1, "two", (0.0, 1.0)),
    ]


def test_the_task_scores_choices_by_their_text() -> None:
    predict = TASK.baselines()["TF-IDF similarity to the prompt"]
    (found,) = predict(TRAIN, [example("a silver bridge", "gold", "bridges of silver")])
    assert (found.label, found.text, found.scores) == (1, "bridges of silver", (0.0, 1.0))
