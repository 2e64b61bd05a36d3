"""Pieces of text to token arrays, in this process or in workers.

A worker loads `tokenizers` and NumPy and nothing of PyTorch, which would cost each some 200 MB and seconds.

Letters: N tokens, S sentences.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertkit.data.sources import Piece
from bertkit.errors import BertkitError

_UNITS_A_WORKER = 2
_SMALL_IDS = 65536


@dataclass(frozen=True, slots=True)
class Unit:
    """Work for one worker: pieces with documents numbered through the whole corpus, ``keys`` beside them.

    ``done_bytes`` is how far in the input the unit ends.
    """

    pieces: tuple[Piece, ...]
    keys: tuple[int, ...]
    done_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPiece:
    """``tokens`` (N,) of a piece of document ``number`` and the lengths (S,) of its sentences."""

    number: int
    key: int
    tokens: NDArray[Any]
    sentence_lengths: NDArray[np.int64]
    unknown: int


@dataclass(frozen=True, slots=True)
class TokenizerRules:
    """What a worker needs to know of a tokenizer: its ``tokenizer.json`` and the id of the unknown piece."""

    file: Path
    vocab_size: int
    unk_id: int

    @property
    def dtype(self) -> type[np.uint16 | np.uint32]:
        """The smallest type that holds every id."""
        return np.uint16 if self.vocab_size <= _SMALL_IDS else np.uint32


class UnitTokenizer:
    """Finds the sentences of units and cuts them into ids; special pieces typed in the text are plain text."""

    def __init__(self, rules: TokenizerRules) -> None:
        self.rules = rules
        self._backend = Tokenizer.from_file(str(rules.file))
        self._backend.encode_special_tokens = True

    def tokenize(self, unit: Unit) -> list[TokenizedPiece]:
        """Every piece of a unit; sentences without a token are left out."""
        split = [piece.sentences() for piece in unit.pieces]
        encoded = iter(self._backend.encode_batch_fast(list(chain.from_iterable(split)), add_special_tokens=False))
        results = []
        for piece, key, sentences in zip(unit.pieces, unit.keys, split, strict=True):
            ids = [found for each in islice(encoded, len(sentences)) if (found := each.ids)]
            tokens = np.fromiter(chain.from_iterable(ids), dtype=self.rules.dtype)
            lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
            unknown = int(np.count_nonzero(tokens == self.rules.unk_id))
            results.append(TokenizedPiece(piece.number, key, tokens, lengths, unknown))
        return results


def tokenize_all(
    units: Iterable[Unit], rules: TokenizerRules, workers: int
) -> Iterator[tuple[Unit, list[TokenizedPiece]]]:
    """Units with their results, in order; no more than a few units are in flight, whatever the input."""
    if workers == 1:
        tokenizer = UnitTokenizer(rules)
        for unit in units:
            yield unit, tokenizer.tokenize(unit)
        return
    waiting: deque[tuple[Unit, Future[list[TokenizedPiece]]]] = deque()
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker, (rules,))
    try:
        for unit in units:
            waiting.append((unit, pool.submit(_tokenize, unit)))
            if len(waiting) > _UNITS_A_WORKER * workers:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    except BrokenProcessPool as error:
        raise BertkitError(
            "a worker process died: killed, out of memory, or started from a script without "
            'if __name__ == "__main__". What is finished is kept; repeat the command, perhaps with --workers 1.'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_worker: dict[str, UnitTokenizer] = {}


def _start_worker(rules: TokenizerRules) -> None:
    """Workers are many and single-threaded; Ctrl-C is for the process that started them."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker["tokenizer"] = UnitTokenizer(rules)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "workers have a parent"
    parent.join()
    os._exit(1)


def _tokenize(unit: Unit) -> list[TokenizedPiece]:
    return _worker["tokenizer"].tokenize(unit)
