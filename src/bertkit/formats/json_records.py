"""Records of JSON files: a list of objects, one object, or one object per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bertkit.errors import data_error
from bertkit.formats.label_studio import flatten_task, is_labelled_task, list_questions
from bertkit.formats.lines import at_line
from bertkit.storage.json_text import RepeatedKeyError, parse_json

Record = dict[str, object]


def json_records(path: Path, lines: Iterable[str], *, whole: bool) -> Iterator[tuple[int, Record]]:
    """The objects of JSON Lines with their lines; of a file that is JSON as a ``whole``, with their numbers from 1.

    A task of Label Studio is the row that ``flatten_task`` makes of it.
    """
    objects: Iterable[tuple[int, Record]] = _objects(path, lines, whole=whole)
    questions: list[str] = []
    if whole:  # as Label Studio exports its tasks
        objects = list(objects)
        questions = list_questions(record for _, record in objects if is_labelled_task(record))
    for number, record in objects:
        yield number, flatten_task(record, questions) if is_labelled_task(record) else record


def _objects(path: Path, lines: Iterable[str], *, whole: bool) -> Iterator[tuple[int, Record]]:
    if not whole:
        numbered = enumerate(lines, 1)
        yield from ((number, _record(path, number, line)) for number, line in numbered if line.strip())
        return
    records = _parse("".join(lines), str(path))
    for number, record in enumerate(records if isinstance(records, list) else [records], 1):
        if not isinstance(record, dict):
            raise data_error(f"{path}: item {number:,} of the list is not a JSON object.")
        yield number, record


def list_nested(records: Iterable[Record]) -> list[str]:
    """The fields inside of objects that are no objects or lists themselves, with a dot between the names."""
    found: dict[str, None] = {}
    waiting = [(name, value) for record in records for name, value in record.items() if isinstance(value, dict)]
    for outer, value in waiting:  # which grows
        for name, inner in value.items():
            if isinstance(inner, dict):
                waiting.append((f"{outer}.{name}", inner))
            elif not isinstance(inner, list):
                found[f"{outer}.{name}"] = None
    return list(found)


def read_field(record: Record, name: str) -> object:
    """The value of a field, which is in an object if its ``name`` has dots; a KeyError if there is none."""
    if name in record:
        return record[name]
    outer, _, inner = name.partition(".")
    value = record[outer]
    if not isinstance(value, dict):
        raise KeyError(name)
    return read_field(value, inner)


def refuse_nested_rows(path: Path, record: Mapping[str, object]) -> None:
    """Raise a data error for a file whose only ``record`` is no row, but an object that has the rows in it."""
    if "paragraphs" in record:
        raise data_error(
            f'{path} has articles of SQuAD without the object around them: write {{"data": [...]}} with the articles '
            "in the list."
        )
    inside = next((name for name, value in record.items() if _is_table(value)), None)
    if inside is not None:
        raise data_error(f'{path} is one object, whose "{inside}" may be the table. Write that list alone into a file.')
    if record and all(isinstance(value, dict) for value in record.values()):
        raise data_error(
            f'{path} is one object with an object per column. Write a list of rows; pandas: to_json(orient="records").'
        )


def _is_table(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(each, dict) for each in value)


def _record(path: Path, number: int, line: str) -> Record:
    if number == 1 and line.lstrip().startswith("["):
        raise data_error(f"{path} is one JSON list. Let its name end in .json, or write one object per line.")
    if number == 1 and line.strip() == "{":
        raise data_error(f"{path} has an object over several lines. Write one object per line.")
    record = _parse(line, at_line(path, number))
    if not isinstance(record, dict):
        raise data_error(f"{at_line(path, number)}: not a JSON object. Write one object per line.")
    return record


def _parse(text: str, where: str) -> object:
    try:
        value: object = parse_json(text, allow_nan=False, unique_keys=True)
    except RepeatedKeyError as error:
        raise data_error(f"{where}: {error}. Rename all but one.") from error
    except ValueError as error:
        raise data_error(f"{where}: not JSON ({error}).") from error
    return value
