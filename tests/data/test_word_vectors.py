"""Word vectors: GloVe's format, bad files, and vectors trained on a corpus."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from bertkit.data.prepare import prepare
from bertkit.data.shards import Corpus
from bertkit.data.word_vectors import read_vectors, train_vectors, write_vectors
from bertkit.errors import BertkitError
from bertkit.text.words import train

LINES = "the 0.5 -1 2e-1\nmill 1 2 3\n. . . 7 8 9\nthe 0 0 0\nBath 3 4 5\nbath 6 6 6\n"
WORDS = ["<PAD>", "the", "Mill", "fjord", ". . .", "Bath"]


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    path = tmp_path / "glove.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


def test_vectors_are_in_the_order_of_the_words(glove: Path) -> None:
    vectors = read_vectors(glove, WORDS)
    assert vectors.table.dtype == np.float32
    assert vectors.found.tolist() == [False, True, True, False, True, True]
    assert vectors.table[1].tolist() == pytest.approx([0.5, -1, 0.2]), "the first line of two"
    assert vectors.table[2].tolist() == [1, 2, 3], "from the lower case"
    assert vectors.table[4].tolist() == [7, 8, 9], "for a word that contains spaces"
    assert vectors.table[5].tolist() == [3, 4, 5], "its own vector, not that of the lower case"
    assert not vectors.table[0].any()


def test_missing_vectors_are_random_with_the_same_statistics_and_reproducible(glove: Path) -> None:
    words = ["<PAD>", "the", "mill", *(f"none{number}" for number in range(999))]
    table = read_vectors(glove, words).table
    known = np.array([0.5, -1, 0.2, 1, 2, 3])
    assert table[3:].mean() == pytest.approx(known.mean(), abs=0.1)
    assert table[3:].std() == pytest.approx(known.std(), rel=0.1)
    assert np.array_equal(read_vectors(glove, words).table, table)


def test_written_vectors_are_read_back(glove: Path, tmp_path: Path) -> None:
    vectors = read_vectors(glove, WORDS)
    write_vectors(tmp_path / "again.txt", WORDS, vectors)
    again = read_vectors(tmp_path / "again.txt", WORDS)
    assert np.array_equal(again.found, vectors.found)
    assert np.array_equal(again.table[again.found], vectors.table[vectors.found])


def test_a_compressed_file_is_read(glove: Path) -> None:
    packed = glove.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(LINES.encode()))
    assert np.array_equal(read_vectors(packed, WORDS).table, read_vectors(glove, WORDS).table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the 1 2 3\nmill 1 2\n", "line 2: has 2 numbers, the first line 3"),
        (b"the 1 2 3 4\nmill 1 2 3\n", "line 2: has 3 numbers, the first line 4"),
        (b"the 1 2 3 4 5 6 7 8\nmill 1 2 3 4 5\n", "line 2: has 5 numbers, the first line 8"),
        (b"the\n", "line 1: has no numbers"),
        (b"the 1 2\nmill 1 2 3\n", "line 2: has 3 numbers, and vectors have 2"),
        (b"the 1 2\nmill 1 x\n", "line 2: 'x' is not a number"),
        (b"the 1 nan\n", "line 1: a number is not finite"),
        (b"other 1 2\n", "has a vector for none of the 2 words"),
        (b"", "has a vector for none of the 2 words"),
        (b"the 1 2\nm\xffll 1 2\n", "line 2: byte 2 of the line is not UTF-8"),
    ],
)
def test_the_error_for_a_bad_file_has_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(BertkitError, match=message):
        read_vectors(path, ["the", "mill"])


def test_a_missing_or_truncated_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"none\.txt does not exist"):
        read_vectors(tmp_path / "none.txt", WORDS)
    (tmp_path / "torn.gz").write_bytes(gzip.compress(LINES.encode())[:-9])
    with pytest.raises(BertkitError, match=r"torn\.gz is damaged or cut off: Compressed file ended"):
        read_vectors(tmp_path / "torn.gz", WORDS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two kinds of sentences without a word in common."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = ["old mill wide river", "red bus long road"] * 60
    (folder / "a.txt").write_text("\n\n".join(lines), encoding="utf-8")
    prepare([folder / "a.txt"], tokenizer=train(lines), output=folder / "data", heldout=0.0)
    return Corpus.open(folder / "data")


def test_words_of_the_same_sentences_have_similar_vectors(corpus: Corpus) -> None:
    vectors = train_vectors(corpus, 7, epochs=30)
    words = corpus.load_tokenizer()
    assert vectors.table.shape == (words.vocab_size, 7)
    assert vectors.found.sum() == 8, "all but the special words"
    ids = [token[0] for token in words.encode("mill river bus").ids]
    mill, river, bus = (row / np.linalg.norm(row) for row in vectors.table[ids])
    assert mill @ river > mill @ bus
    assert np.array_equal(train_vectors(corpus, 7, epochs=30).table, vectors.table)


def test_the_error_without_gensim_names_the_extra(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(BertkitError, match=r"pip install 'bertkit\[vectors\]'"):
        train_vectors(corpus, 7)


def test_the_header_of_word2vec_and_fasttext_is_no_vector(tmp_path: Path) -> None:
    path = tmp_path / "wiki.vec"
    path.write_text("2 3\nthe 1 2 3 \nmill 4 5 6 \n")
    read = read_vectors(path, ["[PAD]", "mill", "the"])
    assert read.table[1:].tolist() == [[4, 5, 6], [1, 2, 3]]
    path.write_text("2 3\nthe 1 2\n")
    with pytest.raises(BertkitError, match=r"wiki\.vec, line 2: has 2 numbers, the first line 3"):
        read_vectors(path, ["[PAD]", "the"])
