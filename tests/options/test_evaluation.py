"""The options of the verbs that measure models."""

from __future__ import annotations

import typing

from bertkit.metrics.squad import Rules
from bertkit.options.evaluation import CompareOptions, EvaluateOptions, SquadScoreOptions


def test_models_are_measured_on_dev_by_default() -> None:
    assert EvaluateOptions("run").split == CompareOptions("a", "b").split == "dev"


def test_rules_are_those_of_the_official_programs() -> None:
    hint = typing.get_type_hints(SquadScoreOptions)["rules"]
    assert typing.get_args(typing.get_args(hint)[0]) == typing.get_args(Rules)


def test_data_is_the_third_argument_of_compare() -> None:
    assert CompareOptions("a", "b", "dev.csv") == CompareOptions(first="a", second="b", data="dev.csv")
