"""Sentences of English and Korean text, by rules.

A sentence ends at ``. ! ?`` or an ellipsis, including closing quotes and brackets, if white space follows and then a
digit or a letter that is not lower case, possibly after a dash or an opening quote or bracket; always at ``。！？``; at
the Korean endings ``다. 요. 죠. 까.`` even without a space after them; and at a blank line. A single line break counts
as white space. A full stop after an abbreviation, an initial or a numbering may not end a sentence. Only white space is
lost. No sentence is longer than ``LONGEST``: a longer one is split at a space, or between characters where there is
none. Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 2000
"""Characters: four to five hundred words, longer than any row that a model reads."""

# Every alternative begins after one character of a fixed set, which the regex engine finds at full speed. Repetitions
# are possessive and start at their first character only: otherwise a million full stops would take 10^12 steps.
_CLOSING = r"""["'”’»)\]」』》〉_*]*+"""
_OPENING = r"""(?:[–—-]++\s*+)?+["'“„‘‚«‹(\[「『《〈¿¡_*]*+"""
_END = re.compile(
    rf"""
    [.!?…。！？\n]
    (?: (?<=[.!?…]) (?<![.!?…]{{2}}) [.!?…]*+ {_CLOSING} \s++ (?= {_OPENING} (?P<next> [^\W_a-z] ) )
      | (?<=[다요죠까]\.) (?= [가-힣] )
      | (?<=[。！？]) [。！？]*+ {_CLOSING} \s*+
      | (?<=\n) [^\S\n]*+ \n \s*+
    )
    """,
    re.VERBOSE,
)

_NAME_FOLLOWS = re.compile(
    r"""mrs?|ms|messrs|mme|mlle|dr|prof|rev|fr|hon|gen|col|capt|lt|sgt|maj|cmdr|adm|gov|sen|rep|pres|vs|cf|viz|approx
    |e\.?g|i\.?e""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER_FOLLOWS = re.compile(
    r"nos?|pp?|vols?|chap|ch|art|figs?|eq|sec|pt|ca?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec", re.IGNORECASE
)
_ANYTHING_FOLLOWS = re.compile(
    r"st|mt|ft|jr|sr|inc|ltd|co|corp|bros|dept|univ|assn|etc|al|eds?|trans|ph\.d|[^\W\d_](?:\.[^\W\d_])+", re.IGNORECASE
)
_STARTER = re.compile(
    rf"""{_OPENING} (?:A|An|The|This|That|These|Those|It|He|She|We|They|You|I|His|Her|Its|Our|Their|My|There|Here|In
    |On|At|As|By|For|From|To|With|After|Before|During|While|When|Where|If|But|And|Or|So|Yet|However|Although|Then|Thus|What
    |Who|Why|How|Some|Many|Most|Both|All|Another|One|No|Not)\b""",
    re.VERBOSE,
)
_WORD = re.compile(r"(?:[^\W_]|\.)*")
# Only this many characters before a full stop are searched for its word, which keeps the time linear.
_REACH = 24
_LONGEST_ABBREVIATION = 6


def split_sentences(text: str) -> list[str]:
    """The sentences of ``text`` in order, without white space around them; none is empty."""
    sentences: list[str] = []
    start = 0
    for end in _END.finditer(text):
        if end["next"] is not None and (end["next"].islower() or _continues(text, start, end)):
            continue
        _add(sentences, text[start : end.end()].strip())
        start = end.end()
    _add(sentences, text[start:].strip())
    return sentences


def _add(sentences: list[str], sentence: str) -> None:
    if 0 < len(sentence) <= LONGEST:
        sentences.append(sentence)
    else:
        sentences += _bounded(sentence)


def _continues(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether the full stop belongs to an abbreviation, to initials or to a numbering like ``2.``"""
    stop = end.start()
    if text[stop] != "." or not text[stop + 1].isspace():
        return False
    found = _WORD.match(text[max(start, stop - _REACH) : stop][::-1])
    word = found.group()[::-1] if found else ""
    if len(word) > _LONGEST_ABBREVIATION and "." not in word:
        return False
    if word.isdecimal():
        return len(word) <= 3 and not text[start : stop - len(word)].strip()
    if _NAME_FOLLOWS.fullmatch(word):
        return True
    if _NUMBER_FOLLOWS.fullmatch(word):
        return end["next"].isdecimal()
    is_initial = len(word) == 1 and word.isupper()
    return bool((is_initial or _ANYTHING_FOLLOWS.fullmatch(word)) and not _STARTER.match(text, end.end()))


def _bounded(sentence: str) -> Iterator[str]:
    """The sentence in parts of at most ``LONGEST`` characters."""
    start = 0
    while start < len(sentence):
        end = start + LONGEST
        if end < len(sentence):
            space = max(sentence.rfind(blank, start + LONGEST // 2, end) for blank in " \n\t")
            end = end if space < 0 else space
        if part := sentence[start:end].strip():
            yield part
        start = end
