"""Lines that occur in many documents."""

from __future__ import annotations

import pytest

from bertkit.data import repeated_lines
from bertkit.data.repeated_lines import RepeatedLines, hash_lines, without_lines

MENU, LICENCE = "Home | About us | Contact | Search", "This text may be copied freely, with this notice."


def repeated(documents: list[str], least: int | None) -> frozenset[int]:
    lines = RepeatedLines(least)
    for each in documents:
        lines.start_document()
        lines.add(each)
        lines.keep()
    return lines.found()


def test_long_lines_are_hashed_without_white_space_around_them() -> None:
    assert len(list(hash_lines(f"{MENU}\nshort\n  \n{LICENCE}"))) == 2
    assert list(hash_lines(f"  {MENU}\t\r\n")) == list(hash_lines(MENU))
    assert list(hash_lines(MENU.upper())) != list(hash_lines(MENU))
    assert len(list(hash_lines("x" * 19 + "  "))) == 0


def test_lines_count_once_per_document() -> None:
    documents = [f"{MENU}\n{LICENCE}\n{LICENCE}", f"{MENU}\nshort", f"{MENU}\nshort", "short"]
    assert repeated(documents, 3) == frozenset(hash_lines(MENU))
    assert repeated(documents, 2) == frozenset(hash_lines(MENU))
    assert repeated(documents, 4) == frozenset()
    assert repeated(documents, None) == frozenset()


def test_documents_that_are_not_kept_do_not_count() -> None:
    lines = RepeatedLines(2)
    for is_kept in (True, False):
        lines.start_document()
        lines.add(MENU)
        if is_kept:
            lines.keep()
    assert lines.found() == frozenset()


def test_memory_is_bounded_and_frequent_lines_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_lines, "_MOST_LINES", 50)
    lines = RepeatedLines(10)
    for number in range(500):
        lines.start_document()
        lines.add(f"{MENU}\nThis line is in document {number} alone.")
        lines.keep()
        assert len(lines._counts) <= 50
    assert lines.found() == frozenset(hash_lines(MENU))


def test_lines_of_a_long_document_are_not_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_lines, "_MOST_LINES", 50)
    lines = RepeatedLines(2)
    lines.start_document()
    for number in range(500):
        lines.add(f"This line has the number {number} of many.")
        assert len(lines._document) <= 50


def test_a_text_loses_the_lines_and_keeps_the_others_as_they_are() -> None:
    text = f"  {MENU} \nA title\n\nIt was dawn, and the mill stood still. \n{LICENCE}"
    assert without_lines(text, frozenset(hash_lines(MENU))) == (text.partition("\n")[2], 1)
    assert without_lines(text, frozenset(hash_lines(f"{MENU}\n{LICENCE}"))) == (
        "A title\n\nIt was dawn, and the mill stood still. ",
        2,
    )
    assert without_lines(text, frozenset({7})) == (text, 0)
