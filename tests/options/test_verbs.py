"""The list of all verbs."""

from __future__ import annotations

import bertkit
from bertkit.options.command import spell_verb
from bertkit.options.verbs import HEADINGS, VERBS

WITHOUT_OPTIONS = {"__version__", "list_tasks", "load", "load_tokenizer"}
"""Public names, besides types, that are no verbs with a record of options."""


def test_every_verb_is_a_public_function() -> None:
    verbs = {name for name in set(bertkit.__all__) - WITHOUT_OPTIONS if not name[0].isupper()}
    assert set(VERBS) == set(map(spell_verb, verbs))


def test_every_verb_has_its_own_record() -> None:
    records = list(VERBS.values())
    assert len(set(records)) == len(records)


def test_every_verb_has_one_heading() -> None:
    assert [verb for verbs in HEADINGS.values() for verb in verbs] == list(VERBS)
