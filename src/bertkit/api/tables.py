"""Tables in memory that a caller gives to a verb in place of the path of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from bertkit.formats.memory_tables import (
    TEMPORARY,
    errors_about,
    is_memory_table,
    require_one_table,
    write_memory_table,
)
from bertkit.options.inputs import kinds_of_inputs
from bertkit.options.job import Options

TABLES = "tables"
"""The folder, in that of a run, of the tables that were in memory when it was started."""

SomeOptions = TypeVar("SomeOptions", bound=Options)


@contextmanager
def tables_as_files(options: SomeOptions) -> Iterator[SomeOptions]:
    """The options with the path of a file in place of every table in memory.

    The files are temporary, or in ``tables/`` of the output where ``KEEPS_TABLES`` says so.
    """
    given: dict[str, Any] = {each.name: getattr(options, each.name) for each in fields(options)}
    tables = {name: value for name, value in given.items() if any(map(is_memory_table, _items(value)))}
    if not tables:
        yield options
    else:
        record: Any = type(options)
        kinds = kinds_of_inputs(record)
        for name in tables:
            if kinds.get(name) in ("table", "stream"):
                require_one_table(tables[name], name)
        with ExitStack() as contexts:
            if options.KEEPS_TABLES:
                folder = Path(given["output"]) / TABLES
            else:
                folder = Path(contexts.enter_context(TemporaryDirectory(prefix=TEMPORARY)))
            checked = _replace(options, tables, folder)
            for name in tables:
                for path in _items(getattr(checked, name)):
                    contexts.enter_context(errors_about(Path(str(path)), name))
            yield checked


def _replace(options: SomeOptions, tables: dict[str, Any], folder: Path) -> SomeOptions:
    paths: dict[str, Any] = {}
    for name, value in tables.items():
        written = [write_memory_table(each, folder, name) if is_memory_table(each) else each for each in _items(value)]
        paths[name] = written if isinstance(value, list | tuple) else written[0]
    return replace(options, **paths)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]
