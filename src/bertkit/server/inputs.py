"""The texts of a request: the one place where every protocol checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from bertkit.inference.texts import Text
from bertkit.server.errors import ServerError, invalid
from bertkit.server.limits import Limits

SomeText = TypeVar("SomeText", bound=Text)


def check_inputs(texts: str | Sequence[SomeText], limits: Limits, field: str = "inputs") -> list[SomeText]:
    """One text or several, each a string or a pair of strings, as a list.

    None at all, and texts without a visible character, are refused with 400, too many or too long ones with 422.
    """
    several = cast("list[SomeText]", [texts] if isinstance(texts, str) else list(texts))
    if not several:
        raise empty(field)
    check_number(several, limits, field)
    for number, text in enumerate(several):
        place = field if isinstance(texts, str) else f"{field}[{number}]"
        for part in (text,) if isinstance(text, str) else text:
            check_text(part, limits, place)
    return several


def place_of(field: str, number: int, count: int) -> str:
    """Where an error about the input ``number`` of ``count`` is: the field, and which of its inputs if not the only."""
    return field if count == 1 else f"{field}[{number}]"


def check_number(inputs: Sequence[object], limits: Limits, field: str) -> None:
    """422 for more inputs than a request may have, in TEI's words."""
    if len(inputs) > limits.inputs:
        raise invalid(f"batch size {len(inputs)} > maximum allowed batch size {limits.inputs}", field)


def check_text(text: str, limits: Limits, field: str) -> str:
    """The text itself."""
    if not text.strip():
        raise empty(field)
    if len(text) > limits.characters:
        raise invalid(f"`{field}` has {len(text):,} characters; {limits.characters:,} are allowed", field)
    return text


def refuse_repetition(characters: int, limits: Limits, field: str) -> None:
    """422 for texts that have more characters than a body may have, because one of them is read with each of others."""
    if characters > limits.body_bytes:
        raise invalid(
            f"the texts have {characters:,} characters, because one is repeated for each of the others; "
            f"{limits.body_bytes:,} are allowed.",
            field,
            "Send fewer.",
        )


def empty(field: str) -> ServerError:
    """A text or a list with nothing in it (400)."""
    return ServerError(400, f"`{field}` cannot be empty", field=field, kind="Empty")
