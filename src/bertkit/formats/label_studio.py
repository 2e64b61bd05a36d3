"""Tasks that Label Studio has exported as JSON, as rows: their data, and what a person has marked in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def is_labelled_task(record: Mapping[str, object]) -> bool:
    """Whether a record is a task with its data and its annotations."""
    return isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list)


def list_questions(tasks: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the questions that the annotations of all tasks answer with choices, in order."""
    results = (result for task in tasks for result in _results(task) or ())
    return list(dict.fromkeys(_question(each) for each in results if _list(each["value"], "choices")))


def flatten_task(record: Mapping[str, Any], questions: Sequence[str] = ()) -> dict[str, object]:
    """The ``id`` and the data of a task, its choices as ``label``, and its ``entities``, each [start, end, type].

    If there are several ``questions``, the choices of each are in a column of its name. A question without an answer
    has None, or what the data have under this name. Of several annotations the first counts that was not cancelled.
    Places are counted in characters; Label Studio counts an emoji as two.
    """
    data: dict[str, object] = record["data"]
    columns = questions if len(questions) > 1 else ["label"]
    row: dict[str, object] = {"id": record.get("id"), **dict.fromkeys(columns), **data, "entities": None}
    results = _results(record)
    if results is None:
        return row
    texts = [value for value in data.values() if isinstance(value, str)]
    row["entities"] = [_span(each["value"], texts) for each in results if _list(each["value"], "labels")]
    for column in columns:
        own = [each for each in results if len(columns) == 1 or _question(each) == column]
        choices = [choice for each in own for choice in _list(each["value"], "choices")]
        if choices:
            row[column] = choices[0] if len(choices) == 1 else choices
    return row


def _results(record: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The answers in the annotation that counts, each with its ``value``; None if nobody finished one."""
    done = [each for each in record["annotations"] if isinstance(each, dict) and not each.get("was_cancelled")]
    if not done:
        return None
    results = [each for each in _list(done[0], "result") if isinstance(each, dict)]
    return [each for each in results if isinstance(each.get("value"), dict)]


def _question(result: Mapping[str, Any]) -> str:
    return str(result.get("from_name"))


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    """The list in a field; an empty one where the field has anything else."""
    value = record.get(name)
    return value if isinstance(value, list) else []


def _span(value: Mapping[str, Any], texts: Sequence[str]) -> list[object]:
    """The place of an entity in characters, and its first label."""
    start, end, marked = value.get("start"), value.get("end"), value.get("text")
    if isinstance(start, int) and isinstance(end, int) and not any(text[start:end] == marked for text in texts):
        for text in texts:
            units = text.encode("utf-16-le", "surrogatepass")
            before, inside = units[: 2 * start], units[2 * start : 2 * end]
            if inside.decode("utf-16-le", "replace") == marked:
                start = len(before.decode("utf-16-le", "replace"))
                end = start + len(marked)
                break
    return [start, end, value["labels"][0]]
