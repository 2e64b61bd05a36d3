"""The one function that checks texts."""

from __future__ import annotations

import pytest

from bertkit.inference.texts import Text
from bertkit.server.errors import ServerError
from bertkit.server.inputs import check_inputs
from bertkit.server.limits import Limits

LIMITS = Limits(inputs=3, characters=7)


def test_one_text_becomes_a_list() -> None:
    assert check_inputs("river", LIMITS) == ["river"]
    texts: list[Text] = ["a", ("b", "c")]
    assert check_inputs(texts, LIMITS) == texts


@pytest.mark.parametrize(
    ("texts", "status", "field", "message"),
    [
        ([], 400, "inputs", "cannot be empty"),
        ("", 400, "inputs", "cannot be empty"),
        (["a", " \n"], 400, "inputs[1]", "cannot be empty"),
        ([("a", "")], 400, "inputs[0]", "cannot be empty"),
        (["a"] * 4, 422, "inputs", "batch size 4 > maximum allowed batch size 3"),
        (["a", "b" * 8], 422, "inputs[1]", "8 characters; 7 are allowed"),
    ],
)
def test_what_cannot_be_used_is_named(texts: str | list[Text], status: int, field: str, message: str) -> None:
    with pytest.raises(ServerError, match=message) as caught:
        check_inputs(texts, LIMITS)
    assert (caught.value.status, caught.value.field) == (status, field)
