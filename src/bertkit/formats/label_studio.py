"""Tasks that Label Studio has exported as JSON, as rows: their data, and what a person has marked in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def is_labelled_task(record: Mapping[str, object]) -> bool:
    """Whether a record is a task with its data and its annotations."""
    return isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list)


def flatten_task(record: Mapping[str, Any]) -> dict[str, object]:
    """The ``id`` and the data of a task, its choices as ``label``, and its ``entities``, each [start, end, type].

    Of several annotations the first counts that was not cancelled; without one both are None. Places are counted in
    characters; Label Studio counts an emoji as two.
    """
    data: dict[str, object] = record["data"]
    row: dict[str, object] = {"id": record.get("id"), **data, "label": None, "entities": None}
    done = [each for each in record["annotations"] if isinstance(each, dict) and not each.get("was_cancelled")]
    if not done:
        return row
    results = [each for each in _list(done[0], "result") if isinstance(each, dict)]
    values = [each["value"] for each in results if isinstance(each.get("value"), dict)]
    choices = [choice for value in values for choice in _list(value, "choices")]
    texts = [value for value in data.values() if isinstance(value, str)]
    row["entities"] = [_span(value, texts) for value in values if _list(value, "labels")]
    if choices:
        row["label"] = choices[0] if len(choices) == 1 else choices
    return row


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
