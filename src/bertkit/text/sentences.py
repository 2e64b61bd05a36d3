"""Sentences of English and Korean text, by rules.

A sentence ends at ``. ! ?`` or an ellipsis, with the quotes and brackets that close behind it, where white space
and a capital, a digit, an opening quote or a letter of a script without capitals follow; at ``。！？`` always; and
at a blank line. A full stop after an abbreviation, an initial or a numbering ends nothing. No character is lost
but white space, and no sentence is longer than ``LONGEST`` characters: what has no end is cut at a space, or
hard where there is none.
"""

from __future__ import annotations

import re

LONGEST = 2000
"""Characters. Four to five hundred words: longer than any row that a model reads."""

_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "rev",
        "fr",
        "st",
        "sr",
        "jr",
        "hon",
        "gen",
        "col",
        "capt",
        "lt",
        "sgt",
        "maj",
        "cmdr",
        "gov",
        "sen",
        "rep",
        "pres",
        "messrs",
        "mme",
        "mlle",
        "mt",
        "ft",
        "vs",
        "etc",
        "cf",
        "al",
        "eg",
        "ie",
        "viz",
        "approx",
        "ca",
        "c",
        "vol",
        "vols",
        "no",
        "nos",
        "pp",
        "p",
        "ch",
        "chap",
        "fig",
        "figs",
        "eq",
        "sec",
        "ed",
        "eds",
        "trans",
        "inc",
        "ltd",
        "co",
        "corp",
        "dept",
        "univ",
        "assn",
        "bros",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "mon",
        "tue",
        "tues",
        "wed",
        "thu",
        "thurs",
        "fri",
        "sat",
        "sun",
        "a.m",
        "p.m",
        "e.g",
        "i.e",
        "u.s",
        "u.k",
        "u.n",
        "d.c",
        "b.c",
        "a.d",
        "ph.d",
        "m.d",
    ]
)
_END = re.compile(
    r"""
    (?P<stop> [.!?]+ | … )      # what ends a sentence
    ["'”’»)\]]*                 # and what closes behind it
    \s+ (?= ["'“‘«(\[]* [^\W_a-z] )
  | [。！？]+ ["'”’»)\]」』]*    # needs no space behind it
  | \n[^\S\n]*\n\s*             # a blank line
    """,
    re.VERBOSE,
)
_WORD_BEFORE = re.compile(r"[\w.]*$")
_REACH = 24


def split_sentences(text: str) -> list[str]:
    """The sentences of ``text`` in their order, without white space around them; none is empty."""
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        if end["stop"] == "." and _continues(text, start, end.start()):
            continue
        _add(sentences, text[start : end.end()])
        start = end.end()
    _add(sentences, text[start:])
    return sentences


def _continues(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at ``stop`` belongs to an abbreviation, an initial or a numbering like ``2.``"""
    found = _WORD_BEFORE.search(text[max(start, stop - _REACH) : stop])
    word = found.group() if found else ""
    if len(word) == 1 and word.isascii() and word.isupper() and word != "I":
        return True
    if word.isdecimal() and len(word) <= 2 and not text[start : stop - len(word)].strip():
        return True
    return word.lower() in _ABBREVIATIONS


def _add(sentences: list[str], piece: str) -> None:
    piece = piece.strip()
    while len(piece) > LONGEST:
        at = max(piece.rfind(" ", LONGEST // 2, LONGEST), piece.rfind("\n", LONGEST // 2, LONGEST))
        at = at if at > 0 else LONGEST
        sentences.append(piece[:at].rstrip())
        piece = piece[at:].lstrip()
    if piece:
        sentences.append(piece)
