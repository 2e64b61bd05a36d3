"""The input of pre-trainings: the text of the corpus, a vocabulary of each kind, and the shards tokenized with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.data.prepare import prepare
from bertkit.data.shards import MANIFEST, Corpus
from bertkit.data.sources import read_texts
from bertkit.data.word_vectors import train_vectors, write_vectors
from bertkit.errors import data_error
from bertkit.report.progress import Progress
from bertkit.reproduction.scales import Scale
from bertkit.scheduling import Unit
from bertkit.storage.atomic import make_folder, write_text
from bertkit.text import bpe, byte_bpe, wordpiece, words
from bertkit.text.loading import load_tokenizer
from bertkit.text.tokenizer_files import write_tokenizer
from bertkit.text.words import WordLevel

_SOURCES = ("enwiki*", "books/*")
"""Files below ``corpora`` that take the place of English Wikipedia and the BooksCorpus."""

VECTORS = "vectors"
"""The name of the work that makes word vectors."""

_MEGABYTES_FOR_SUBWORDS = 50
"""More text hardly changes a vocabulary of subwords."""


@dataclass(frozen=True, kw_only=True)
class Corpora:
    """The work that prepares the corpus ``files`` in the folder ``output``.

    Without a ``vectors_file`` word vectors are trained on the corpus.
    """

    scale: Scale
    files: tuple[Path, ...]
    output: Path
    vectors_file: Path | None = None

    @property
    def text(self) -> Unit:
        """The text that is read: one file with a part of the corpus, if the scale does not read all of it."""
        return Unit(name="text", make=lambda progress: self._write_text(), is_done=lambda: self._texts()[0].exists())

    def tokenizer(self, kind: str) -> Unit:
        """A vocabulary: ``wordpiece``, ``wordpiece-cased``, ``bpe``, ``byte-bpe`` or ``words``."""
        folder = self.folder_of_tokenizer(kind)
        return Unit(
            name=f"tokenizer-{kind}",
            make=lambda progress: self._train_tokenizer(kind, progress),
            is_done=folder.exists,
            needs=[self.text],
        )

    def data(self, kind: str) -> Unit:
        """The text tokenized with this kind of vocabulary, in shards."""
        folder = self.folder_of_data(kind)
        return Unit(
            name=f"data-{kind}",
            make=lambda progress: self._prepare(kind, progress),
            is_done=(folder / MANIFEST).exists,
            needs=[self.tokenizer(kind)],
        )

    @property
    def vectors(self) -> Unit:
        """Word vectors: those of ``vectors_file``, or trained on the corpus."""
        return Unit(
            name=VECTORS,
            make=lambda progress: self._train_vectors(progress),
            is_done=self.file_of_vectors.exists,
            needs=[self.data("words")],
        )

    @property
    def file_of_vectors(self) -> Path:
        """Where the vectors are, in GloVe's text format."""
        return self.vectors_file or self.output / "vectors.txt"

    def words(self) -> WordLevel:
        """The vocabulary of whole words."""
        return WordLevel.load(self.folder_of_tokenizer("words"))

    def folder_of_tokenizer(self, kind: str) -> Path:
        """Where the vocabulary is."""
        return self.output / "tokenizers" / kind

    def folder_of_data(self, kind: str) -> Path:
        """Where the shards are."""
        return self.output / "data" / kind

    def texts(self) -> Iterator[str]:
        """All text that is read, in chunks."""
        return read_texts(self._texts())

    def _texts(self) -> Sequence[Path]:
        return self.files if self.scale.corpus_megabytes is None else [self.output / "corpus.jsonl"]

    def _write_text(self) -> None:
        """Take the same amount of text from every folder of the corpus."""
        assert self.scale.corpus_megabytes is not None
        folders = sorted({path.parent for path in self.files})
        characters = int(self.scale.corpus_megabytes * 1e6) // len(folders)
        parts = [
            text
            for folder in folders
            for text in _take(read_texts([path for path in self.files if path.parent == folder]), characters)
        ]
        make_folder(self.output)
        lines = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in parts)
        write_text(self._texts()[0], lines)

    def _train_tokenizer(self, kind: str, progress: Progress) -> None:
        size = self.scale.word_vocab_size if kind == "words" else self.scale.vocab_size
        progress.say(f"training a vocabulary of at most {size:,} ({kind})")
        texts = self.texts() if kind == "words" else _take(self.texts(), _MEGABYTES_FOR_SUBWORDS * 1_000_000)
        make_folder(self.folder_of_tokenizer(kind).parent)
        write_tokenizer(self.folder_of_tokenizer(kind), _TRAINERS[kind](texts, self.scale))

    def _train_vectors(self, progress: Progress) -> None:
        progress.say(f"training word vectors of size {self.scale.vector_size}")
        vectors = train_vectors(Corpus.open(self.folder_of_data("words")), self.scale.vector_size)
        write_vectors(self.file_of_vectors, self.words().vocabulary, vectors)

    def _prepare(self, kind: str, progress: Progress) -> None:
        progress.say(f"preparing the corpus ({kind})")
        prepare(
            self._texts(),
            tokenizer=load_tokenizer(self.folder_of_tokenizer(kind)),
            output=self.folder_of_data(kind),
            heldout=self.scale.heldout,
        )


_TRAINERS: Mapping[str, Callable[[Iterable[str], Scale], Callable[[Path], None]]] = {
    "wordpiece": lambda texts, scale: wordpiece.train(texts, vocab_size=scale.vocab_size, cased=scale.cased).save,
    "wordpiece-cased": lambda texts, scale: wordpiece.train(texts, vocab_size=scale.vocab_size, cased=True).save,
    "bpe": lambda texts, scale: bpe.train(texts, vocab_size=scale.vocab_size).save,
    "byte-bpe": lambda texts, scale: byte_bpe.train(texts, vocab_size=scale.vocab_size).save,
    "words": lambda texts, scale: (
        words.train(texts, vocab_size=scale.word_vocab_size, word_length=scale.word_length).save
    ),
}
"""By kind of tokenizer, a function that trains it and returns the one that saves it."""


def find_corpus(data: Path) -> tuple[Path, ...]:
    """The files of Wikipedia and of the books below ``data``."""
    files = [path for pattern in _SOURCES for path in sorted((data / "corpora").glob(pattern)) if path.is_file()]
    if not files:
        raise data_error(f"{data / 'corpora'} has no enwiki* and no books/*. Name the corpus: --corpus FILE...")
    return tuple(files)


def _take(texts: Iterable[str], size: int) -> Iterator[str]:
    """The first ``size`` characters of the texts; the last text is cut."""
    for text in texts:
        if size <= 0:
            return
        yield text[:size]
        size -= len(text)
