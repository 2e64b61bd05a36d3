"""From the corpus to what pre-trainings read: the text, a vocabulary of each kind, and the shards cut with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.data.prepare import prepare
from bertkit.data.shards import MANIFEST, Corpus
from bertkit.data.sources import read_texts
from bertkit.data.word_vectors import train_vectors, write_vectors
from bertkit.errors import data_error
from bertkit.report.progress import Progress
from bertkit.reproduction.scales import Scale
from bertkit.scheduling import Unit
from bertkit.storage.atomic import make_folder, write_file, write_folder
from bertkit.text import bpe, byte_bpe, wordpiece, words
from bertkit.text.loading import load_tokenizer
from bertkit.text.words import WordLevel

_SOURCES = ("enwiki*", "books/*")
"""What stands for English Wikipedia and the BooksCorpus below ``corpora``."""

_MEGABYTES_FOR_PIECES = 50
"""A vocabulary of word pieces hardly changes behind so much text."""


@dataclass(frozen=True, kw_only=True)
class Corpora:
    """The works that a reproduction in ``output`` begins with.

    ``files`` is the corpus. Without a ``vectors_file`` vectors are learned on it.
    """

    scale: Scale
    files: tuple[Path, ...]
    output: Path
    vectors_file: Path | None = None

    @property
    def text(self) -> Unit:
        """The part of the corpus that is read, as one file where it is not all of it."""
        return Unit(name="text", make=lambda progress: self._write_text(), is_done=lambda: self._texts()[0].exists())

    def tokenizer(self, kind: str) -> Unit:
        """A vocabulary: ``wordpiece``, ``wordpiece-cased``, ``bpe``, ``byte-bpe`` or ``words``."""
        folder = self.folder_of_tokenizer(kind)
        return Unit(
            name=f"tokenizer-{kind}",
            make=lambda progress: self._learn(kind, progress),
            is_done=folder.exists,
            needs=[self.text],
        )

    def data(self, kind: str) -> Unit:
        """The text in pieces of this kind, as pre-training reads it."""
        folder = self.folder_of_data(kind)
        return Unit(
            name=f"data-{kind}",
            make=lambda progress: self._prepare(kind, progress),
            is_done=(folder / MANIFEST).exists,
            needs=[self.tokenizer(kind)],
        )

    @property
    def vectors(self) -> Unit:
        """Vectors of the words: those of a file that was named, or learned on the corpus."""
        return Unit(
            name="vectors",
            make=lambda progress: self._learn_vectors(progress),
            is_done=self.file_of_vectors.exists,
            needs=[self.data("words")],
        )

    @property
    def file_of_vectors(self) -> Path:
        """Where the vectors are, in GloVe's text format."""
        return self.vectors_file or self.output / "vectors.txt"

    def words(self) -> WordLevel:
        """The vocabulary of words."""
        return WordLevel.load(self.folder_of_tokenizer("words"))

    def folder_of_tokenizer(self, kind: str) -> Path:
        """Where the vocabulary is."""
        return self.output / "tokenizers" / kind

    def folder_of_data(self, kind: str) -> Path:
        """Where the shards are."""
        return self.output / "data" / kind

    def texts(self) -> Iterator[str]:
        """All text that is read, in pieces."""
        return read_texts(self._texts())

    def _texts(self) -> Sequence[Path]:
        return self.files if self.scale.corpus_megabytes is None else [self.output / "corpus.jsonl"]

    def _write_text(self) -> None:
        """As much of every kind of source, whole pieces of documents in turn."""
        assert self.scale.corpus_megabytes is not None
        room = int(self.scale.corpus_megabytes * 1e6)
        folders = {path.parent for path in self.files}
        parts = [
            text
            for folder in sorted(folders)
            for text in _take(read_texts([path for path in self.files if path.parent == folder]), room // len(folders))
        ]
        make_folder(self.output)
        lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in parts)
        write_file(self._texts()[0], lambda path: path.write_text(lines, encoding="utf-8"))

    def _learn(self, kind: str, progress: Progress) -> None:
        progress.say(f"learning a vocabulary of {self.scale.vocab_size:,} ({kind})")
        texts = self.texts() if kind == "words" else _take(self.texts(), _MEGABYTES_FOR_PIECES * 1_000_000)
        make_folder(self.folder_of_tokenizer(kind).parent)
        write_folder(self.folder_of_tokenizer(kind), _LEARN[kind](texts, self.scale).save)

    def _learn_vectors(self, progress: Progress) -> None:
        progress.say(f"learning vectors of {self.scale.vector_size} numbers")
        learned = train_vectors(Corpus.open(self.folder_of_data("words")), self.scale.vector_size)
        write_vectors(self.file_of_vectors, self.words().vocabulary, learned)

    def _prepare(self, kind: str, progress: Progress) -> None:
        progress.say(f"preparing the corpus ({kind})")
        prepare(
            self._texts(),
            tokenizer=load_tokenizer(self.folder_of_tokenizer(kind)),
            output=self.folder_of_data(kind),
            heldout=self.scale.heldout,
        )


_LEARN: Mapping[str, Callable[[Iterable[str], Scale], Any]] = {
    "wordpiece": lambda texts, scale: wordpiece.train(texts, vocab_size=scale.vocab_size, cased=scale.cased),
    "wordpiece-cased": lambda texts, scale: wordpiece.train(texts, vocab_size=scale.vocab_size, cased=True),
    "bpe": lambda texts, scale: bpe.train(texts, vocab_size=scale.vocab_size),
    "byte-bpe": lambda texts, scale: byte_bpe.train(texts, vocab_size=scale.vocab_size),
    "words": lambda texts, scale: words.train(texts, vocab_size=scale.words, word_length=scale.word_length),
}


def find_corpus(data: Path) -> tuple[Path, ...]:
    """The files of Wikipedia and of the books below ``data``."""
    files = [path for pattern in _SOURCES for path in sorted((data / "corpora").glob(pattern)) if path.is_file()]
    if not files:
        raise data_error(f"{data / 'corpora'} has no enwiki* and no books/*. Name the corpus: --corpus FILE...")
    return tuple(files)


def _take(texts: Iterable[str], size: int) -> Iterator[str]:
    """Texts up to so many characters, the last one cut."""
    for text in texts:
        if size <= 0:
            return
        yield text[:size]
        size -= len(text)
