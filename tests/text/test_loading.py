"""The kind of a tokenizer is found from the files in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.contracts import SubwordTokenizer
from bertkit.errors import BertkitError
from bertkit.text import bpe, byte_bpe, wordpiece, words
from bertkit.text.loading import load_tokenizer

TEXTS = ["Seven wide rivers ran slowly.", "The old mill stood still.", "Seven millers count seven coins."] * 3

TRAINED: dict[str, SubwordTokenizer] = {
    "wordpiece": wordpiece.train(TEXTS, vocab_size=67),
    "bpe": bpe.train(TEXTS, vocab_size=67),
    "byte_bpe": byte_bpe.train(TEXTS, vocab_size=277),
    "words": words.train(TEXTS, vocab_size=13, word_length=7),
}


@pytest.fixture(params=TRAINED)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def assert_same(folder: Path, kind: str) -> None:
    loaded = load_tokenizer(folder)
    assert type(loaded) is type(TRAINED[kind])
    assert loaded.encode("An old mill").ids == TRAINED[kind].encode("An old mill").ids


def test_a_saved_folder(tmp_path: Path, kind: str) -> None:
    TRAINED[kind].save(tmp_path)
    assert_same(tmp_path, kind)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "byte_bpe"])
def test_a_folder_without_tokenizer_json(tmp_path: Path, kind: str) -> None:
    TRAINED[kind].save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert_same(tmp_path, kind)


def test_files_with_the_names_of_openai(tmp_path: Path) -> None:
    TRAINED["bpe"].save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").rename(tmp_path / "encoder_bpe_40000.json")
    (tmp_path / "merges.txt").rename(tmp_path / "vocab_40000.bpe")
    assert_same(tmp_path, "bpe")


def test_a_bare_vocabulary(tmp_path: Path) -> None:
    TRAINED["wordpiece"].save(tmp_path)
    assert load_tokenizer(tmp_path / "vocab.txt").vocab_size == TRAINED["wordpiece"].vocab_size


def test_a_file_of_a_folder_is_the_tokenizer_in_it(tmp_path: Path, kind: str) -> None:
    TRAINED[kind].save(tmp_path)
    for file in tmp_path.iterdir():
        if file.name in ("tokenizer.json", "vocab.json", "merges.txt"):
            assert_same(file, kind)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "it has neither tokenizer.json nor vocab.txt"),
        ("[1]", 'is not a tokenizer: it has no "model"'),
        ('{"model": {"type": "Unigram", "vocab": []}}', "is a Unigram tokenizer"),
        ('{"model": {"type": "BPE", "vocab": {}, "merges": [["a"]]}}', "is not a merge of two tokens"),
    ],
)
def test_an_unknown_tokenizer_is_an_error(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(BertkitError, match=message):
        load_tokenizer(tmp_path)
