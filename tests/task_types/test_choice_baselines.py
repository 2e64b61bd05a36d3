from __future__ import annotations

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
    (predict,) = TASK.baselines().values()
    assert [each.label for each in predict(TRAIN, dev)] == [1, 0, 0]


def test_the_task_scores_choices_by_their_text() -> None:
    ((name, predict),) = TASK.baselines().items()
    (found,) = predict(TRAIN, [example("a silver bridge", "gold", "bridges of silver")])
    assert name == "TF-IDF similarity to the prompt"
    assert (found.label, found.text, found.scores) == (1, "bridges of silver", (0.0, 1.0))
