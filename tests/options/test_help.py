"""The groups of options in the help, and the examples."""

from __future__ import annotations

import shlex

import pytest

from bertkit.options.command import spell_option
from bertkit.options.description import list_options
from bertkit.options.help import COLUMNS, EXAMPLES, GROUPS, OPTIONS, REQUIRED, TRAINING, group_of, group_of_switch
from bertkit.options.verbs import VERBS


def groups_of(verb: str) -> dict[str, str]:
    options = list_options(VERBS[verb])
    return {
        each.name: group_of(each, has_labels="label" in [other.name for other in options])
        for each in options
        if not each.positional
    }


def test_every_verb_has_an_example_with_its_required_options() -> None:
    assert EXAMPLES.keys() == VERBS.keys()
    for verb, example in EXAMPLES.items():
        words = shlex.split(example)
        assert words[: 1 + len(verb.split())] == ["bertkit", *verb.split()]
        for option in list_options(VERBS[verb]):
            assert not option.required or option.positional or spell_option(option.name) in words, verb


def test_options_are_grouped_by_what_they_are_about() -> None:
    groups = groups_of("finetune")
    assert {groups["model"], groups["output"]} == {REQUIRED}
    assert {groups["text"], groups["kind"], groups["allow_rare_labels"]} == {COLUMNS}
    assert {groups["lr"], groups["epochs"]} == {TRAINING}


def test_the_kind_of_a_tokenizer_is_not_about_columns() -> None:
    assert groups_of("tokenizer train")["kind"] == OPTIONS


@pytest.mark.parametrize("verb", VERBS)
def test_every_group_has_a_place_in_the_help(verb: str) -> None:
    assert {*groups_of(verb).values(), group_of_switch("json")} <= {*GROUPS}
