"""Objectives by the names of their modules."""

from __future__ import annotations

import pytest
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.named_objectives import build_objectives, find_objective, list_objectives


def test_every_objective_of_bertkit_is_found_by_its_name() -> None:
    names = list_objectives()
    assert {"mlm", "nsp", "clm", "bilm", "passages"} <= set(names)
    assert len({find_objective(name) for name in names}) == len(names)


def test_heads_are_named_after_their_labels() -> None:
    heads = build_objectives(["nsp", "mlm"], make_encoder(make_tokenizer()))
    assert [(name, type(head)) for name, head in heads.items()] == [
        (find_objective(name).label, find_objective(name)) for name in ("nsp", "mlm")
    ]


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(BertkitError, match=r'no pre-training objective named "mlmm"\. Did you mean "mlm"') as caught:
        find_objective("mlmm")
    assert caught.value.exit_code == WRONG_USAGE
