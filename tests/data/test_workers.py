"""Work in worker processes: order, memory, programs without a main guard, and workers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertkit.data import workers
from bertkit.data.parts import DocumentsPart, LinePart
from bertkit.data.sources import LineForm, TextChunk
from bertkit.data.tokenizing import TokenizerFile
from bertkit.data.unit_worker import UnitResult, UnitWorker, WorkUnit
from bertkit.data.workers import work_all
from bertkit.errors import BertkitError
from bertkit.storage.subprocess_worker import SubprocessWorker
from bertkit.storage.worker_pool import WorkerPool
from bertkit.text.wordpiece import train


def unit_of(number: int) -> WorkUnit:
    chunks = tuple(TextChunk(number + at, f"Some words {number}. [MASK] and {at}.") for at in range(3))
    return WorkUnit(((0, DocumentsPart(chunks, starts_inside=False)),), 20, number)


UNITS = [unit_of(number) for number in range(0, 99, 3)]


@pytest.fixture
def tokenizer(tmp_path: Path) -> TokenizerFile:
    tokenizer = train(["Some words and more words"], vocab_size=99)
    tokenizer.save(tmp_path)
    return TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens)


def as_lists(result: UnitResult) -> list[object]:
    return [
        (document.text_hash, block.key, block.tokens.tolist(), block.sentence_lengths.tolist(), block.unknown)
        for part in result
        for document in part.documents
        for block in document.blocks
    ]


def test_workers_give_the_same_results_in_order(tokenizer: TokenizerFile) -> None:
    in_process = UnitWorker(tokenizer)
    for (unit, result), expected in zip(work_all(UNITS, UnitWorker(tokenizer), 3), UNITS, strict=True):
        assert unit == expected
        assert as_lists(result) == as_lists(in_process(expected)) != []


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_about_a_file_is_that_of_its_worker(tmp_path: Path, tokenizer: TokenizerFile, workers: int) -> None:
    (tmp_path / "a.jsonl").write_text('"one"\n{"text"\n')
    part = LinePart(tmp_path / "a.jsonl", LineForm("record"), "error", 0, 14)
    with pytest.raises(BertkitError, match=r"a\.jsonl, line 2 is not JSON") as caught:
        list(work_all([*UNITS[:5], WorkUnit(((0, part),), 20, 0)], UnitWorker(tokenizer), workers))
    assert caught.value.exit_code == 3


def test_few_units_are_in_memory_at_a_time(tokenizer: TokenizerFile) -> None:
    taken = 0

    def units() -> Iterator[WorkUnit]:
        nonlocal taken
        for unit in UNITS:
            taken += 1
            yield unit

    for done, _ in enumerate(work_all(units(), UnitWorker(tokenizer), 2)):
        assert taken <= done + 1 + 2 * 2 or taken == len(UNITS)


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[WorkerPool[Any, Any]]:
    """The pools that are started."""
    started: list[WorkerPool[Any, Any]] = []

    def start_and_remember(*arguments: Any, **options: Any) -> WorkerPool[Any, Any]:
        started.append(WorkerPool(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(workers, "WorkerPool", start_and_remember)
    return started


def test_a_worker_that_dies_is_an_error(tokenizer: TokenizerFile, pools: list[WorkerPool[Any, Any]]) -> None:
    results = work_all(UNITS, UnitWorker(tokenizer), 2)
    next(results)
    for worker in pools[0].workers:
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(BertkitError, match=r"a worker process died \(exit code -9\)") as caught:
        list(results)
    assert caught.value.exit_code == 1


def test_workers_end_when_the_generator_is_closed(tokenizer: TokenizerFile, pools: list[WorkerPool[Any, Any]]) -> None:
    results = work_all(UNITS, UnitWorker(tokenizer), 2)
    next(results)
    assert all(map(_is_running, pools[0].workers))
    results.close()  # type: ignore[attr-defined]
    assert not any(map(_is_running, pools[0].workers))


def _is_running(worker: SubprocessWorker[Any, Any]) -> bool:
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_does_not_load_pytorch() -> None:
    code = "import sys; import bertkit.data.workers; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_workers_need_no_main_guard_and_no_file(tokenizer: TokenizerFile) -> None:
    program = f"""
from pathlib import Path
from bertkit.data.parts import DocumentsPart
from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import TokenizerFile
from bertkit.data.unit_worker import UnitWorker, WorkUnit
from bertkit.data.workers import work_all

file = Path({str(tokenizer.file)!r})
tokenizer = TokenizerFile(file, {tokenizer.vocab_size}, {tokenizer.unk_id}, {tokenizer.special_tokens})
unit = WorkUnit(((0, DocumentsPart((TextChunk(0, "words"),), False)),), 500, 0)
print(sum(len(result[0].documents[0].blocks) for _, result in work_all([unit] * 7, UnitWorker(tokenizer), 2)))
"""
    ran = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=True)
    assert ran.stdout == "7\n"
