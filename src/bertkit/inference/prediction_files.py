"""Answers for every row of a file, written so that an interruption costs nothing.

Answers are gathered, one JSON record a line, in a hidden file beside the output whose name carries a fingerprint of the
model and the input. The same command finds it and goes on behind its last whole line; another model or another input
never does. Only a complete output gets its name.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from bertkit.errors import did_you_mean, usage_error
from bertkit.inference.pipeline import Pipeline
from bertkit.optional import require
from bertkit.storage.atomic import explain_writing, write_file
from bertkit.storage.checksums import sha256_of
from bertkit.task_types import MultiLabelTask, write_labels
from bertkit.training.interrupts import Interrupted, Interrupts

Report = Callable[[int], None]
"""Hears how many rows are done."""

STREAM = Path("-")

_BATCH_SIZE = 32
_ROWS_BETWEEN_REPORTS = 64
_OF_LABELS = ("id", "label", "probability")
_OF_NUMBERS = ("id", "label")
_OF_CHOICES = ("id", "label", "choice", "probability")
_OF_SPANS = ("id", "answer", "start", "end", "probability")
_OF_TAGS = ("id", "words", "tags")
"""The columns of a table of answers."""

_DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins like this for a formula."""


def answer_file(pipeline: Pipeline, source: Path, output: Path, report: Report) -> int:
    """Answer every row of ``source`` (``-`` is stdin) into ``output`` (``-`` is stdout); returns how many there were.

    Raises Interrupted on Ctrl-C or SIGTERM, and keeps what is done.
    """
    if output == STREAM:
        return _answer_to_stdout(pipeline, source)
    write = _writer(output)
    if write is _write_json and source != STREAM:
        # Better said before the work than after it.
        deque(_with_unlike_ids(pipeline.task.read(source), source), maxlen=0)
    if write is _write_parquet:
        _load_arrow()
    partial = output.with_name(f".partial-{_fingerprint(pipeline, source)}-{output.name}")
    try:
        done = _keep_whole_lines(partial) if source != STREAM else _start_anew(partial)
    except OSError as error:
        raise usage_error(f"cannot write to {output.parent}: {error.strerror}. Choose another -o file.") from error
    report(done)
    examples = _examples(pipeline, source)
    if write is _write_json and source == STREAM:
        examples = _with_unlike_ids(examples, source)
    with explain_writing(output), partial.open("a", encoding="utf-8") as file, Interrupts() as interrupts:
        for record in _answers(pipeline, islice(examples, done, None)):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            done += 1
            if done % _ROWS_BETWEEN_REPORTS == 0:
                report(done)
            if interrupts.requested:
                raise Interrupted(interrupts.requested, f"stopped after {done:,} rows. Go on with the same command.")
    report(done)
    write_file(output, lambda temporary: write(partial, temporary))
    if output.suffix.lower() == ".json" and _has_null_odds(partial):
        odds = output.with_name(f"{output.stem}.null_odds.json")
        write_file(odds, lambda temporary: _write_json(partial, temporary, field="null_odds"))
    partial.unlink()
    return done


def _answer_to_stdout(pipeline: Pipeline, source: Path) -> int:
    count = 0
    for record in _answers(pipeline, _examples(pipeline, source)):
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


def _examples(pipeline: Pipeline, source: Path) -> Iterator[Any]:
    if source != STREAM:
        return pipeline.task.read(source)
    lines = enumerate(sys.stdin, start=1)
    return (pipeline.task.read_line(str(number), line.rstrip("\n")) for number, line in lines)


def _answers(pipeline: Pipeline, examples: Iterable[Any]) -> Iterator[dict[str, Any]]:
    asked: deque[Any] = deque()

    def note(example: Any) -> Any:
        asked.append(example)
        return example

    for prediction in pipeline.stream(map(note, examples), batch_size=_BATCH_SIZE):
        yield pipeline.task.describe(asked.popleft(), prediction)


def _fingerprint(pipeline: Pipeline, source: Path) -> str:
    """Of everything that the answers depend on."""
    files = sorted(source.iterdir()) if source.is_dir() else [source]
    models = [path for folder in pipeline.folders for path in sorted(folder.iterdir())]
    hashes = [sha256_of(path) for path in (*models, *files) if path.is_file()]
    return hashlib.sha256("\n".join([*hashes, source.name]).encode()).hexdigest()[:16]


def _keep_whole_lines(partial: Path) -> int:
    """Cut off a torn last line, and count the others."""
    partial.touch()
    with partial.open("rb+") as file:
        whole = count = 0
        for line in file:
            if line.endswith(b"\n"):
                whole, count = whole + len(line), count + 1
        file.truncate(whole)
    return count


def _start_anew(partial: Path) -> int:
    partial.write_bytes(b"")
    return 0


def _writer(output: Path) -> Callable[[Path, Path], None]:
    suffix = output.suffix.lower()
    if suffix not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise usage_error(f'{output}: no format named "{suffix}".{did_you_mean(suffix, _WRITERS)} There are: {known}.')
    return _WRITERS[suffix]


def _with_unlike_ids(examples: Iterable[Any], source: Path) -> Iterator[Any]:
    """The examples, as long as no id comes twice: an object of answers has room for one answer an id."""
    seen: set[str] = set()
    for example in examples:
        if example.id in seen:
            raise usage_error(
                f'{source}: the id "{example.id}" comes twice, and .json names answers by it: write .jsonl.'
            )
        seen.add(example.id)
        yield example


def _read(partial: Path) -> Iterator[Mapping[str, Any]]:
    with partial.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _write_jsonl(partial: Path, path: Path) -> None:
    path.write_bytes(partial.read_bytes())


def _write_txt(partial: Path, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{_cell(record, _answer(record))}\n" for record in _read(partial))


def _write_json(partial: Path, path: Path, *, field: str | None = None) -> None:
    """One object, id -> answer, as SQuAD's programs read it; or id -> another ``field``."""
    answers = {record["id"]: _answer(record) if field is None else record[field] for record in _read(partial)}
    path.write_text(json.dumps(answers, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _has_null_odds(partial: Path) -> bool:
    return "null_odds" in next(_read(partial), {})


def _answer(record: Mapping[str, Any]) -> Any:
    return next(record[name] for name in ("answer", "tags", "label") if name in record)


def _columns(partial: Path) -> tuple[str, ...]:
    first = next(_read(partial), {})
    if "answer" in first:
        return _OF_SPANS
    if "choice" in first:
        return _OF_CHOICES
    if "tags" in first:
        return _OF_TAGS
    return _OF_LABELS if "probability" in first or not first else _OF_NUMBERS


def _write_csv(partial: Path, path: Path, *, delimiter: str = ",") -> None:
    columns = _columns(partial)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        for record in _read(partial):
            writer.writerow([_harmless(_cell(record, record.get(name, ""))) for name in columns])


def _write_tsv(partial: Path, path: Path) -> None:
    _write_csv(partial, path, delimiter="\t")


def _write_parquet(partial: Path, path: Path) -> None:
    arrow, parquet = _load_arrow()
    rows = [{name: record.get(name) for name in _columns(partial)} for record in _read(partial)]
    parquet.write_table(arrow.Table.from_pylist(rows), path)


def _load_arrow() -> tuple[Any, Any]:
    modules = ("pyarrow", "pyarrow.parquet")
    arrow, parquet = (require(module, extra="parquet", purpose="writing .parquet") for module in modules)
    return arrow, parquet


def _cell(record: Mapping[str, Any], value: Any) -> Any:
    """Words and their tags as one cell, with spaces between; several labels as files of training data have them."""
    if not isinstance(value, list):
        return value
    return " ".join(value) if "tags" in record else write_labels(value, MultiLabelTask.separator)


def _harmless(cell: Any) -> Any:
    """Text that a spreadsheet would run gets an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_DANGEROUS) else cell


_WRITERS: Mapping[str, Callable[[Path, Path], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".jsonl": _write_jsonl,
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".txt": _write_txt,
}
