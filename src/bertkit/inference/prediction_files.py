"""Predictions for every row of a file, written so that they can be continued after an interruption.

Predictions are collected, one JSON record per line, in a hidden file beside the output, whose name has a fingerprint of
the model and the input. The same command finds it and continues after its last complete line; another model or another
input has another name. Only complete output gets its own name.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from bertkit.contracts import Example
from bertkit.errors import usage_error
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.prediction_formats import find_writer, names_answers_by_id, write_object
from bertkit.storage.atomic import explain_writing, write_file
from bertkit.storage.checksums import sha256_of
from bertkit.training.interrupts import Interrupted, Interrupts

Report = Callable[[int], None]
"""Called with the number of finished rows."""

STREAM = Path("-")

_BATCH_SIZE = 32
_ROWS_BETWEEN_REPORTS = 64


def predict_file(pipeline: Pipeline, source: Path, output: Path, report: Report) -> int:
    """Predict every row of ``source`` (``-`` is stdin) into ``output`` (``-`` is stdout), and return their number.

    Raises Interrupted on Ctrl-C or SIGTERM; finished rows are kept.
    """
    if output == STREAM:
        return _predict_to_stdout(pipeline, source)
    write = find_writer(output)
    needs_unique_ids = names_answers_by_id(output) and (source == STREAM or not pipeline.task.reader.makes_ids_unique)
    if needs_unique_ids and source != STREAM:
        # Checked before the work, so that an hour of predictions is not lost to a repeated id.
        deque(_with_unique_ids(pipeline.task.reader.read(source), source), maxlen=0)
    records = output.with_name(f".partial-{_fingerprint(pipeline, source)}-{output.name}")
    try:
        done = _keep_complete_lines(records) if source != STREAM else _empty(records)
    except OSError as error:
        raise usage_error(f"cannot write to {output.parent}: {error.strerror}. Choose another -o file.") from error
    report(done)
    examples = _examples(pipeline, source)
    if needs_unique_ids and source == STREAM:
        examples = _with_unique_ids(examples, source)
    with explain_writing(output), records.open("a", encoding="utf-8") as file, Interrupts() as interrupts:
        for record in _records(pipeline, islice(examples, done, None)):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            done += 1
            if done % _ROWS_BETWEEN_REPORTS == 0:
                report(done)
            if interrupts.requested:
                raise Interrupted(interrupts.requested, f"stopped after {done:,} rows. Continue with the same command.")
    report(done)
    task = pipeline.task
    write_file(output, lambda temporary: write(records, temporary, task.answer_columns))
    if names_answers_by_id(output) and done:
        for field in task.further_answer_files:
            further = output.with_name(f"{output.stem}.{field}.json")
            write_file(further, partial(write_object, records, field=field))
    records.unlink()
    return done


def _predict_to_stdout(pipeline: Pipeline, source: Path) -> int:
    count = 0
    for record in _records(pipeline, _examples(pipeline, source)):
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


def _examples(pipeline: Pipeline, source: Path) -> Iterator[Example]:
    reader = pipeline.task.reader
    if source != STREAM:
        return reader.read(source)
    lines = enumerate(sys.stdin, start=1)
    return (reader.read_line(str(number), line.rstrip("\n")) for number, line in lines)


def _records(pipeline: Pipeline, examples: Iterable[Example]) -> Iterator[dict[str, object]]:
    """The description of each prediction, in order."""
    waiting: deque[Example] = deque()

    def remember(example: Example) -> Example:
        waiting.append(example)
        return example

    for prediction in pipeline.stream(map(remember, examples), batch_size=_BATCH_SIZE):
        yield pipeline.task.describe(waiting.popleft(), prediction)


def _fingerprint(pipeline: Pipeline, source: Path) -> str:
    """A hash of everything that the predictions depend on."""
    files = sorted(source.iterdir()) if source.is_dir() else [source]
    models = [path for folder in pipeline.folders for path in sorted(folder.iterdir())]
    hashes = [sha256_of(path) for path in (*models, *files) if path.is_file()]
    return hashlib.sha256("\n".join([*hashes, source.name]).encode()).hexdigest()[:16]


def _keep_complete_lines(records: Path) -> int:
    """Remove an incomplete last line, and count the others."""
    records.touch()
    with records.open("rb+") as file:
        size = count = 0
        for line in file:
            if line.endswith(b"\n"):
                size, count = size + len(line), count + 1
        file.truncate(size)
    return count


def _empty(records: Path) -> int:
    records.write_bytes(b"")
    return 0


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
