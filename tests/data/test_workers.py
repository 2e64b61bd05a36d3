"""Workers: the same results as without them, in order, from any kind of program, and no silence when one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bertkit.data import workers
from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import TokenizedChunk, TokenizerFile, UnitTokenizer, WorkUnit
from bertkit.data.workers import start_worker, tokenize_all
from bertkit.errors import BertkitError
from bertkit.text.wordpiece import WordPiece, train

UNITS = [
    WorkUnit(
        tuple(TextChunk(number + at, f"Some words {number}. [MASK] and {at}.") for at in range(3)), (1, 2, 3), number
    )
    for number in range(0, 99, 3)
]


@pytest.fixture
def rules(tmp_path: Path) -> TokenizerFile:
    tokenizer = train(["Some words and more words"], vocab_size=99)
    tokenizer.save(tmp_path)
    return TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id)


def plain(results: list[TokenizedChunk]) -> list[object]:
    return [
        (each.number, each.key, each.tokens.tolist(), each.sentence_lengths.tolist(), each.unknown) for each in results
    ]


def test_results_come_in_order_and_are_the_same(rules: TokenizerFile) -> None:
    alone = UnitTokenizer(rules)
    for unit, results in zip(tokenize_all(UNITS, rules, 3), UNITS, strict=True):
        assert unit[0] == results
        assert plain(unit[1]) == plain(alone.tokenize(results))


def test_sentences_are_cut_as_if_each_were_alone(tmp_path: Path, rules: TokenizerFile) -> None:
    text = "Some words. More wor\0ds! [SEP] And [PAD]?\n\n\u200b\n\n\0\n\nWords . \ufffd.\n\n한글, é."
    piece = TextChunk(0, text)
    tokenizer = WordPiece.load(tmp_path)
    alone = [ids for sentence in piece.sentences() if (ids := tokenizer.encode(sentence).ids)]
    (found,) = UnitTokenizer(rules).tokenize(WorkUnit((piece,), (1,), 0))
    assert found.sentence_lengths.tolist() == [len(ids) for ids in alone]
    assert found.tokens.tolist() == [number for ids in alone for number in ids]
    assert found.unknown == sum(ids.count(tokenizer.unk_id) for ids in alone) > 0
    (nothing,) = UnitTokenizer(rules).tokenize(WorkUnit((TextChunk(0, " \0\n"),), (1,), 0))
    assert (len(nothing.tokens), len(nothing.sentence_lengths)) == (0, 0)


def test_few_units_are_in_flight(rules: TokenizerFile) -> None:
    taken = 0

    def units() -> Iterator[WorkUnit]:
        nonlocal taken
        for unit in UNITS:
            taken += 1
            yield unit

    for done, _ in enumerate(tokenize_all(units(), rules, 2)):
        assert taken <= done + 1 + 2 * 2 or taken == len(UNITS)


def test_a_worker_that_dies_is_an_error(rules: TokenizerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[workers.Worker] = []

    def start_and_remember(rules: TokenizerFile) -> workers.Worker:
        started.append(start_worker(rules))
        return started[-1]

    monkeypatch.setattr(workers, "start_worker", start_and_remember)
    results = tokenize_all(UNITS, rules, 2)
    next(results)
    for worker in started:
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(BertkitError, match=r"a worker process died \(exit code -9\)") as caught:
        list(results)
    assert caught.value.exit_code == 1


def test_they_end_when_results_are_no_longer_wanted(rules: TokenizerFile) -> None:
    results = tokenize_all(UNITS, rules, 2)
    next(results)
    results.close()  # type: ignore[attr-defined]


def test_a_worker_does_not_load_pytorch() -> None:
    code = "import sys; import bertkit.data.workers; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_program_without_a_main_guard_and_from_standard_input_has_workers(rules: TokenizerFile) -> None:
    program = f"""
from pathlib import Path
from bertkit.data.tokenizing import TokenizerFile, WorkUnit
from bertkit.data.workers import tokenize_all
from bertkit.data import workers
from bertkit.data.sources import TextChunk

rules = TokenizerFile(Path({str(rules.file)!r}), {rules.vocab_size}, {rules.unk_id})
print(sum(len(results) for _, results in tokenize_all([WorkUnit((TextChunk(0, "words"),), (1,), 0)] * 7, rules, 2)))
"""
    ran = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=True)
    assert ran.stdout == "7\n"
