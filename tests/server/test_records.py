"""The records of requests."""

from __future__ import annotations

import msgspec
import pytest

from bertkit.server import cohere, label_studio, openai, records, tei

MODULES = (records, openai, tei, cohere, label_studio)


@pytest.mark.parametrize(
    "record",
    [
        each
        for module in MODULES
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, (records.Request, records.Parameters))
    ],
)
def test_no_request_ignores_a_field_that_it_does_not_know(record: type[msgspec.Struct]) -> None:
    assert record.__struct_config__.forbid_unknown_fields


def test_a_pair_has_two_texts() -> None:
    body = {"inputs": ["a", ["b", "c"]]}
    assert msgspec.convert(body, records.ClassifyRequest).inputs == ["a", ("b", "c")]
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"inputs": [["b", "c", "d"]]}, records.ClassifyRequest)
