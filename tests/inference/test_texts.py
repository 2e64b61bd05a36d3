"""Texts that a caller gives: a list of strings or pairs, never a table or a single string by mistake."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.inference.texts import check_plain_texts, check_text, check_texts, check_words


class Frame:
    """As pandas: iterating over it gives the names of its columns."""

    columns = ("review", "label")

    def __iter__(self) -> object:
        return iter(self.columns)


class Dataset:
    """As Hugging Face datasets: ``column_names``, and rows that are dictionaries."""

    column_names = ("review",)


def test_lists_and_other_iterables_of_texts_are_texts() -> None:
    assert check_texts(["a", ("b", "c"), ["d", "e"]]) == ["a", ("b", "c"), ("d", "e")]
    assert check_texts(text for text in "ab") == ["a", "b"]
    assert check_texts([]) == []
    assert check_text("a", "text") == "a"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("hello", "texts is one text, and must be a list"),
        (b"hello", "texts is bytes; decode it to a text first"),
        ({"a"}, "texts is a set, which has no order: give a list, such as sorted"),
        (Frame(), "a table with the columns review, label"),
        (Dataset(), "a table with the columns review: give"),
        ({"review": ["a"]}, "a table with the columns review: give"),
        (None, "texts is None; it must be a list"),
        (np.array("a"), r"texts is array\('a', dtype='<U1'\); it must be a list"),
        (float("nan"), "texts is nan; it must be a list"),
        (["a", None], r"texts\[1\] is None; it must be a text"),
        (["a", float("nan")], r"texts\[1\] is nan; it must be a text"),
        ([("a", None)], r"texts\[0\]\[1\] is None; it must be a text"),
        ([("a", "b", "c")], r"texts\[0\] is \('a', 'b', 'c'\)"),
        ([{"text": "a" * 50}], r"texts\[0\] is of the type dict"),
    ],
)
def test_anything_else_is_named(texts: object, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as raised:
        check_texts(texts)
    assert raised.value.exit_code == WRONG_USAGE


def test_one_text_must_be_a_string() -> None:
    with pytest.raises(BertkitError, match="question is None; it must be a text"):
        check_text(None, "question")


def test_plain_texts_are_a_list_whatever_holds_them() -> None:
    assert check_plain_texts("a river") == ["a river"]
    assert check_plain_texts(text for text in ("a", "b")) == ["a", "b"]
    with pytest.raises(BertkitError, match=r"^texts\[1\] is \('a', 'b'\); it must be a text.$"):
        check_plain_texts(["a", ("a", "b")])


def test_the_words_of_a_text_are_strings() -> None:
    assert check_words(["the", "mill"]) == check_words(word for word in ("the", "mill")) == ("the", "mill")
    for words, message in (
        (["the", 3], r"text\[1\] is 3; it must be a text"),
        (None, "text is None; .* a list of words"),
        (b"a", "text is b'a'; .* a list of words"),
        ({"the", "mill"}, "text is .* a list of words"),
        ({"the": 1}, r"text is \{'the': 1\}; .* a list of words"),
    ):
        with pytest.raises(BertkitError, match=message) as raised:
            check_words(words)
        assert raised.value.exit_code == WRONG_USAGE
