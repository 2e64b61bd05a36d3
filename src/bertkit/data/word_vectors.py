"""Word vectors for a vocabulary: read from a file in GloVe's text format, or trained on a prepared corpus.

A line of a GloVe file is a word and its numbers, separated by spaces; there is no header. A few words of the largest
published file contain a space, so the numbers are counted from the end of the line.

A word without a vector of its own takes that of its lower case, because the published vectors of 50 to 300 numbers that
taggers use have no upper case. The remaining words get random vectors with the mean and the standard deviation of all
others, as in allennlp (``modules/token_embedders/embedding.py``); padding, the first word, is zeros.

Letters: V words of the vocabulary, W numbers of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from bertkit.data.shards import Corpus
from bertkit.errors import data_error
from bertkit.formats.cells import is_number
from bertkit.formats.lines import Lines
from bertkit.optional import require
from bertkit.storage.atomic import write_file

_RANDOM_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """``table`` (V, W), a vector for every word; ``found`` (V,) is False where the vector is random."""

    table: NDArray[np.float32]
    found: NDArray[np.bool_]


def read_vectors(path: Path, words: Sequence[str]) -> WordVectors:
    """The vectors of ``words`` from a text file, plain or compressed; if a word occurs twice, its first line counts.

    The first line may have the number of words and of values, as word2vec and fastText write it.
    Raises a data error with the number of the line if that has fewer or more values than the first, or if a value is
    not a number.
    """
    wanted = {spelling for word in words for spelling in (word, word.lower())}
    known: dict[str, NDArray[np.float32]] = {}
    width = 0
    for number, line in enumerate(Lines(path).read(), start=1):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            width = int(fields[1])
            continue
        # Without such a header the first line sets the number of values.
        width = width or len(fields) - 1
        word = " ".join(fields[: max(0, len(fields) - width)])
        if not width or not word:
            problem = f"has {len(fields) - 1} numbers, the first line {width}" if width else "has no numbers"
            raise data_error(f"{path}, line {number:,}: {problem}. A line must be a word and its vector, with spaces.")
        if " " in word and fields[0] in wanted and all(map(is_number, word.split(" ")[1:])):
            problem = f"has {len(fields) - 1} numbers, and vectors have {width}"
            raise data_error(f"{path}, line {number:,}: {problem}. A line must be a word and its vector, with spaces.")
        if word in wanted and word not in known:
            known[word] = _read_numbers(fields[-width:], path, number)
    return _fill(known, words, width, str(path))


def require_trainer() -> ModuleType:
    """gensim's models; a usage error if it is not installed."""
    return require("gensim.models", extra="vectors", purpose="training word vectors")


def train_vectors(corpus: Corpus, width: int, *, epochs: int = 5) -> WordVectors:
    """Vectors for the vocabulary of ``corpus``, trained on its sentences by gensim: skip-grams, 5 words on either side.

    Needs ``bertkit[vectors]``. gensim runs one thread, so that the same corpus gives the same vectors.
    """
    words = [str(number) for number in range(corpus.manifest.vocab_size)]
    model = require_trainer().Word2Vec(
        _Sentences(corpus), vector_size=width, window=5, sg=1, min_count=1, workers=1, epochs=epochs, seed=_RANDOM_SEED
    )
    known = {word: model.wv[word] for word in words if word in model.wv}
    return _fill(known, words, width, str(corpus.folder))


def write_vectors(path: Path, words: Sequence[str], vectors: WordVectors) -> None:
    """Write the vectors that are not random, in the format that ``read_vectors`` reads."""

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as lines:
            for word, vector, found in zip(words, vectors.table, vectors.found, strict=True):
                if found:
                    lines.write(" ".join([word, *map(repr, vector.tolist())]) + "\n")

    write_file(path, write)


@dataclass(frozen=True)
class _Sentences:
    """The sentences of a corpus, which can be iterated repeatedly; every word is written as its id."""

    corpus: Corpus

    def __iter__(self) -> Iterator[list[str]]:
        for shard in self.corpus.shards:
            for start, end in zip(shard.sentence_offsets[:-1], shard.sentence_offsets[1:], strict=True):
                yield list(map(str, shard.tokens[start:end].tolist()))


def _fill(known: Mapping[str, NDArray[np.float32]], words: Sequence[str], width: int, source: str) -> WordVectors:
    """The vectors in the order of the vocabulary, with random ones for the words that have none."""
    if not known:
        raise data_error(f"{source} has a vector for none of the {len(words):,} words. Is it for another language?")
    vectors = [known.get(word, known.get(word.lower())) for word in words]
    found = np.array([vector is not None for vector in vectors])
    sample = np.stack([vector for vector in vectors if vector is not None])
    # A fixed seed: the same file gives the same table in every run and process.
    random = np.random.default_rng(_RANDOM_SEED).normal(sample.mean(), sample.std(), (len(words), width))
    table = random.astype(np.float32)
    table[found] = sample
    table[0] = 0.0
    return WordVectors(table, found)


def _read_numbers(fields: Sequence[str], path: Path, line: int) -> NDArray[np.float32]:
    try:
        values = np.array(list(map(float, fields)))
    except ValueError as error:
        raise data_error(f"{path}, line {line:,}: {str(error).rpartition(':')[2].strip()} is not a number.") from error
    if not (np.abs(values) <= np.finfo(np.float32).max).all():  # NaN is not, either
        raise data_error(f"{path}, line {line:,}: a number is not finite in float32.")
    return values.astype(np.float32)
