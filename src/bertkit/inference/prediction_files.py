"""Predictions for every row of a file, written so that they can be continued after an interruption.

Predictions are collected, one record per line, in a hidden file beside the output (see ``partial_records``). Only
complete output gets its own name.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path

from bertkit.contracts import Example
from bertkit.errors import SAME_COMMAND, count_of, usage_error
from bertkit.escaping import to_json
from bertkit.formats.lines import decode_lines
from bertkit.formats.tables import Table
from bertkit.inference.partial_records import keep_first, keep_intact, read_records
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.predict import BATCHES_IN_A_CHUNK
from bertkit.inference.prediction_formats import find_writer, names_answers_by_id, write_object
from bertkit.machine.interrupts import Interrupted, Interrupts
from bertkit.options.inputs import STREAM, read_stdin
from bertkit.storage.atomic import explain_writing, write_file
from bertkit.storage.checksums import fingerprint_of, sha256_of
from bertkit.storage.json_log import format_record, open_log
from bertkit.storage.outputs import check_output, locked_partial, partial_path
from bertkit.task_types import FileTask

Report = Callable[[int], None]
"""Called with the number of finished rows."""

_ROW = "row"
"""Under this name a record has its prediction: the columns of a table may have any names, that of the checksum too."""

INPUT_PREFIX = "input_"
"""Before the name of a column of the input that is named like one of the predictions."""

_BATCH_SIZE = 32
_ROWS_BETWEEN_REPORTS = 64

_ROWS_AT_ONCE = BATCHES_IN_A_CHUNK * _BATCH_SIZE
"""Rows after a multiple of which a continuation begins: only there do rows share their batches with the same rows, and
a number of the output may otherwise differ in its last digit."""


@dataclass(frozen=True)
class _Rows:
    """The predictions in a file of records; each reading begins with the first."""

    records: Path

    def __iter__(self) -> Iterator[dict[str, object]]:
        return (record[_ROW] for record in read_records(self.records))


def predict_file(pipeline: Pipeline, source: Path, output: Path, report: Report, *, overwrite: bool = False) -> int:
    """Predict every row of ``source`` (``-`` is stdin) into ``output`` (``-`` is stdout), and return their number.

    Raises a usage error if ``output`` is the input, exists without ``overwrite``, or is being written by another
    process; Interrupted on Ctrl-C or SIGTERM. Finished rows of a file are kept, and the same command continues.
    """
    if output == STREAM:
        return _predict_to_stdout(pipeline, source)
    write = find_writer(output)
    further = _further_files(pipeline, output)
    check_output(output, inputs=[source], overwrite=overwrite)
    for path in further.values():  # a process that was killed near its end has written these, and not yet the output
        check_output(path, inputs=[source], overwrite=overwrite or partial_path(output).exists())
    needs_unique_ids = names_answers_by_id(output) and (source == STREAM or not pipeline.task.reader.makes_ids_unique)
    if needs_unique_ids and source != STREAM:
        # Checked before the work, so that an hour of predictions is not lost to a repeated id.
        deque(_with_unique_ids(pipeline.task.reader.read(source), source), maxlen=0)
    kept = _KeptColumns.of(pipeline.task, source)
    with locked_partial(output) as records:
        check_output(output, overwrite=overwrite)  # another process may have written it before it released the lock
        try:
            done = _predict_rows(pipeline, source, kept, records, report, needs_unique_ids=needs_unique_ids)
        except BaseException:
            if source == STREAM:  # what was read is gone, so nothing can be continued
                records.unlink()
            raise
        rows = _Rows(records)
        columns = replace(pipeline.task.answer_columns, kept=tuple(kept.names.values()))
        if done:
            for field, path in further.items():
                write_file(path, partial(write_object, rows, field=field))
        write_file(output, lambda temporary: write(rows, temporary, columns))
        records.unlink()
    return done


def _further_files(pipeline: Pipeline, output: Path) -> dict[str, Path]:
    """The files beside a ``.json`` of answers, such as the odds that a question has none, by field."""
    if not names_answers_by_id(output):
        return {}
    return {field: output.with_name(f"{output.stem}.{field}.json") for field in pipeline.task.answer_columns.files}


def _predict_rows(
    pipeline: Pipeline, source: Path, kept: _KeptColumns, records: Path, report: Report, *, needs_unique_ids: bool
) -> int:
    """Append the records of all rows that ``records`` does not have yet."""
    done = keep_intact(records, "" if source == STREAM else _fingerprint(pipeline, source, kept))
    done = _in_whole_parts(done)
    keep_first(records, done)
    report(done)
    examples = _examples(pipeline, source)
    if needs_unique_ids and source == STREAM:
        examples = _with_unique_ids(examples, source)
    # Ctrl-C ends the process at once while it waits for a line of stdin.
    caught = nullcontext(Interrupts()) if source == STREAM else Interrupts()
    with explain_writing(records), open_log(records) as file, caught as interrupts:
        values = islice(kept.values(), done, None)
        for record in _records(pipeline, islice(examples, done, None), values, source):
            file.write(format_record({_ROW: record}))
            done += 1
            if done % _ROWS_BETWEEN_REPORTS == 0:
                report(done)
            if done % _ROWS_AT_ONCE:
                continue  # the rest of the part is computed already, and only a whole part is kept
            file.flush()
            if interrupts.requested:
                raise Interrupted(interrupts.requested, f"stopped after {count_of(done, 'row')}. {SAME_COMMAND}")
    report(done)
    return done


def _in_whole_parts(rows: int) -> int:
    """The first ``rows`` rows without those that a continuation predicts again: it begins with a whole part."""
    return rows - rows % _ROWS_AT_ONCE


@dataclass(frozen=True)
class _KeptColumns:
    """The columns of ``table`` that predictions keep of their input: ``names`` by their places.

    There are none, and no table, where the rows of the input are not the examples.
    """

    table: Table | None
    names: Mapping[int, str]

    @classmethod
    def of(cls, task: FileTask, source: Path) -> _KeptColumns:
        """Those of the input ``source``.

        The ids are left out, because each prediction has its own. A column that is named like one of the predictions
        gets ``input_`` before its name, twice if the table has that one. A column without a name is left out.
        """
        opened = None if source == STREAM else task.reader.open_table(source)
        if opened is None:
            return cls(None, {})
        table, columns = opened
        taken = {*task.answer_columns.columns, *task.answer_columns.further}
        others = {name for name in table.columns if name not in taken}
        names = {
            place: _free_name(name, others) if name in taken else name
            for place, name in enumerate(table.columns)
            if name and name != columns.id
        }
        return cls(table, names)

    def values(self) -> Iterator[Mapping[str, object]]:
        """Those of each row, by the names of the columns."""
        if self.table is None or not self.names:
            return repeat({})
        return ({name: row[place] for place, name in self.names.items()} for row in self.table.all_values())


def _free_name(name: str, others: Collection[str]) -> str:
    name = f"{INPUT_PREFIX}{name}"
    return _free_name(name, others) if name in others else name


def _predict_to_stdout(pipeline: Pipeline, source: Path) -> int:
    count = 0
    kept = _KeptColumns.of(pipeline.task, source)
    for record in _records(pipeline, _examples(pipeline, source), kept.values(), source):
        sys.stdout.write(to_json(record) + "\n")
        count += 1
    return count


def _examples(pipeline: Pipeline, source: Path) -> Iterator[Example]:
    reader = pipeline.task.reader
    if source != STREAM:
        return reader.read(source)
    lines = enumerate(decode_lines(Path("stdin"), read_stdin()), start=1)
    return (reader.read_line(str(number), line.rstrip("\r\n")) for number, line in lines)


def _records(
    pipeline: Pipeline, examples: Iterable[Example], kept: Iterable[Mapping[str, object]], source: Path
) -> Iterator[dict[str, object]]:
    """The description of each prediction with the values that are kept of its row of the input, in order."""
    waiting: deque[Example] = deque()

    def remember(example: Example) -> Example:
        waiting.append(example)
        return example

    predict = partial(pipeline.stream, batch_size=_BATCH_SIZE)
    read = map(remember, examples)
    predictions = chain.from_iterable(map(predict, _chunks(read))) if source == STREAM else predict(read)
    for prediction, row in zip(predictions, kept, strict=False):
        yield {**pipeline.task.describe(waiting.popleft(), prediction), **row}


def _chunks(examples: Iterator[Example]) -> Iterator[list[Example]]:
    """The examples in parts that are read here and not by a thread, which would keep the process from ending while it
    waits for a line of stdin."""
    return iter(lambda: list(islice(examples, _ROWS_AT_ONCE)), [])


def _fingerprint(pipeline: Pipeline, source: Path, kept: _KeptColumns) -> str:
    """A hash of everything that the predictions, and the form of their records, depend on."""
    task = json.dumps(pipeline.task.record(), sort_keys=True)  # has the columns that are read
    names = json.dumps(kept.names)
    return fingerprint_of(pipeline.folders, sha256_of(source), source.name, pipeline.runtime.name, task, names, _ROW)


def _with_unique_ids(examples: Iterable[Example], source: Path) -> Iterator[Example]:
    """The examples, up to one whose id has occurred before: a JSON object has one answer per id."""
    seen: set[str] = set()
    for example in examples:
        if example.id in seen:
            raise usage_error(
                f'{source}: the id "{example.id}" occurs twice, and .json names answers by id: write .jsonl.'
            )
        seen.add(example.id)
        yield example
