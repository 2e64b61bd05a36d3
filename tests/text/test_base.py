"""What every tokenizer inherits, tried on WordPiece."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.contracts import Tokens
from bertkit.errors import BertkitError
from bertkit.text.base import extends, replace_surrogates
from bertkit.text.wordpiece import WordPiece, train

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3
KOREAN = ["한국어를 공부합니다. 한국 사람은 한국말을 합니다.", "공부는 어렵지만 재미있습니다!"] * 3
VOCABULARY = [*SPECIAL_TOKENS, "the", "naive", "fox", "##es", ",", ".", "e", "한"]


@pytest.fixture
def tokenizer(tmp_path: Path) -> WordPiece:
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
    return WordPiece.load(tmp_path)


def test_ids_follow_the_vocabulary(tokenizer: WordPiece) -> None:
    assert tokenizer.vocabulary == VOCABULARY
    assert tokenizer.vocab_size == len(VOCABULARY)
    assert [tokenizer.id_to_token(id) for id in tokenizer.tokens_to_ids(["fox", "##es"])] == ["fox", "##es"]


def test_a_row_begins_with_cls_and_ends_with_sep(tokenizer: WordPiece) -> None:
    assert (tokenizer.start_id, tokenizer.between_ids, tokenizer.end_id) == (2, [3], 3)


def test_offsets_include_combining_marks(tokenizer: WordPiece) -> None:
    """The library leaves out the accent, which normalization drops, and the Jamo, which it composes."""
    assert tokenizer.encode("the e\u0301.").offsets == [(0, 3), (4, 6), (6, 7)]


def test_lone_surrogates_are_replaced_and_pairs_are_not() -> None:
    assert replace_surrogates("a\ud83d b\U0001f600") == "a\uffff b\U0001f600"


def test_a_batch_encodes_each_text_as_alone(tokenizer: WordPiece) -> None:
    texts = ["the fox", "", "naïve foxes, the", "\ud800 the"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_ids_batch(tuple(texts)) == [tokenizer.encode(text).ids for text in texts]
    assert tokenizer.encode_batch([]) == []


def test_a_token_outside_the_vocabulary_has_no_id(tokenizer: WordPiece) -> None:
    with pytest.raises(BertkitError, match='no token "foxes"'):
        tokenizer.tokens_to_ids(["the", "foxes"])


def test_a_text_of_a_megabyte_is_encoded(tokenizer: WordPiece) -> None:
    assert len(tokenizer.encode("the " * 250_000).ids) == 250_000
    assert tokenizer.encode("x" * 1_000_000) == Tokens([tokenizer.unk_id], [(0, 1_000_000)])


HARD_CHARACTERS = st.sampled_from(
    [*" \tİΣß\u0301\u200b\0\ufffd한\u1112\u1161\ue000中\U0002f800ﬁ👍\u200d\ud800[]MASK#é.'", "[MASK]"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(HARD_CHARACTERS, st.characters()), max_size=40).map("".join), st.booleans())
def test_offsets_are_ordered_and_inside_the_text(text: str, specials: bool) -> None:
    for tokenizer in trained_once():
        tokens = tokenizer.encode(text, specials=specials)
        assert len(tokens.ids) == len(tokens.offsets)
        before = (0, 0)
        for id, (start, end) in zip(*tokens, strict=True):
            assert 0 <= id < tokenizer.vocab_size
            assert before[0] <= start <= end <= len(text)
            assert before[1] <= end
            assert start < end
            before = (start, end)


@cache
def trained_once() -> list[WordPiece]:
    """Tokenizers with different rules."""
    texts = ENGLISH + KOREAN
    return [
        train(texts, vocab_size=199),
        train(texts, vocab_size=199, unicode_form="NFD"),
        train(texts, vocab_size=199, cased=True),
    ]


def test_a_tokenizer_extends_one_with_the_same_rules_and_the_same_first_entries() -> None:
    base = train(["The river ran by the old mill."] * 9, vocab_size=60)
    larger = base.add_tokens(["zeppelin", "C++"])
    assert extends(larger, base)
    assert not extends(base, larger)
    assert not extends(base, base)
    cased = train(["The river ran by the old mill."] * 9, vocab_size=60, cased=True)
    assert not extends(larger, cased)
    assert extends(larger.add_tokens(["mills"]), base)


@pytest.mark.parametrize(
    ("texts", "message"),
    [("abc", "texts is one text, and must be a list of texts"), (["a", 3], "a text is of the type int|texts")],
)
def test_what_is_no_list_of_texts_is_refused(tokenizer: WordPiece, texts: Any, message: str) -> None:
    for encode in (tokenizer.encode_batch, tokenizer.encode_ids_batch):
        with pytest.raises((BertkitError, TypeError), match=message):  # a TypeError where types are checked
            encode(texts)
