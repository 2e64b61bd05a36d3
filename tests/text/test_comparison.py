"""How well vocabularies fit a text: fertility, characters per token and unknown tokens."""

from __future__ import annotations

import pytest

from bertkit.contracts import SubwordTokenizer
from bertkit.errors import BertkitError
from bertkit.text import bpe, wordpiece, words
from bertkit.text.comparison import compare_tokenizers

TEXTS = ["The mill by the river stops in winter."] * 50


def test_the_figures_are_those_of_counting_by_hand() -> None:
    tokenizers: dict[str, SubwordTokenizer] = {
        "subwords": wordpiece.train(TEXTS, vocab_size=200),
        "bytes": bpe.train(TEXTS, vocab_size=90),
        "words": words.train(TEXTS, vocab_size=20),
    }
    text = "the mill stops\n\nin winter the mill #stops"
    found = {each.tokenizer: each for each in compare_tokenizers(tokenizers, [text, text])}
    for name, tokenizer in tokenizers.items():
        tokens = [token for line in text.splitlines() for token in tokenizer.encode(line).ids]
        assert found[name].vocab_size == tokenizer.vocab_size
        assert found[name].tokens_per_word == pytest.approx(len(tokens) / 8)
        assert found[name].characters_per_token == pytest.approx(len(text) / len(tokens))
    assert found["subwords"].unknown == pytest.approx(1 / 9), "# is no subword"
    assert found["words"].tokens_per_word <= found["subwords"].tokens_per_word


def test_text_without_words_is_an_error() -> None:
    tokenizer = wordpiece.train(TEXTS, vocab_size=200)
    for texts in ([], ["", " \n\t"]):
        with pytest.raises(BertkitError, match="no word in the text"):
            compare_tokenizers({"a": tokenizer}, texts)
