"""The texts that a caller gives to a loaded model: a list of strings or of pairs, and nothing that resembles one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from bertkit.errors import usage_error

Text = str | tuple[str, str]
"""One text, or the two of a pair."""

PlainTexts = str | Iterable[str] | NDArray[Any]
"""One text, or a list, a NumPy array or a pandas Series of texts."""

_MOST_SHOWN = 5


def check_texts(texts: object, name: str = "texts") -> list[Text]:
    """The texts as a list. A single string, a table and elements that are not strings are usage errors."""
    if isinstance(texts, bytes):
        raise usage_error(f"{name} is bytes; decode it to a text first.")
    if isinstance(texts, str):
        raise usage_error(f"{name} is one text, and must be a list of texts: put it in brackets.")
    if columns := _columns_of(texts):
        shown = ", ".join(map(str, columns[:_MOST_SHOWN]))
        raise usage_error(f"{name} is a table with the columns {shown}: give the list of one column.")
    if isinstance(texts, set | frozenset):
        raise usage_error(f"{name} is a set, which has no order: give a list, such as sorted({name}).")
    if not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) == 0:
        raise usage_error(f"{name} is {describe_value(texts)}; it must be a list of texts.")
    return [_check_element(text, f"{name}[{number}]") for number, text in enumerate(texts)]


def check_plain_texts(texts: object, name: str = "texts") -> list[str]:
    """The texts as a list, a single text as a list of one. Pairs, and texts without a visible character, are usage
    errors."""
    if isinstance(texts, str):
        return [check_content(texts, name)]
    return [check_content(text, f"{name}[{number}]") for number, text in enumerate(check_texts(texts, name))]


def check_text(text: object, name: str) -> str:
    """The text itself; anything but a string is a usage error."""
    if not isinstance(text, str):
        raise usage_error(f"{name} is {describe_value(text)}; it must be a text.")
    return text


def check_content(text: object, name: str) -> str:
    """The text itself; one without a visible character is a usage error, too."""
    checked = check_text(text, name)
    if not checked.strip():
        raise usage_error(f"{name} is empty: there is nothing to read. Give a text.")
    return checked


def check_words(words: object) -> tuple[str, ...]:
    """The words of one text; anything but a list of strings is a usage error."""
    if isinstance(words, bytes | set | frozenset) or _columns_of(words) or not isinstance(words, Iterable):
        raise usage_error(f"text is {describe_value(words)}; it must be a text, or a list of words.")
    return tuple(check_text(word, f"text[{number}]") for number, word in enumerate(words))


def _check_element(text: object, name: str) -> Text:
    if isinstance(text, str):
        return text
    if isinstance(text, tuple | list) and len(text) == 2:
        return check_text(text[0], f"{name}[0]"), check_text(text[1], f"{name}[1]")
    raise usage_error(f"{name} is {describe_value(text)}; it must be a text, or a pair of two texts.")


def _columns_of(table: object) -> list[object]:
    """The columns of a mapping, of a pandas or polars DataFrame, or of a Hugging Face Dataset; else nothing."""
    if isinstance(table, Mapping):
        return list(table)
    columns = getattr(table, "column_names", getattr(table, "columns", ()))
    return list(columns) if isinstance(columns, Iterable) else []


def describe_value(value: object) -> str:
    """A value as it is spelled in Python, or its type if that is long."""
    shown = repr(value)
    return shown if len(shown) < 40 and "\n" not in shown else f"of the type {type(value).__name__}"
