"""The hints of errors about values of another type."""

from __future__ import annotations

from typing import Any

import pytest

from bertkit.server.errors import ServerError
from bertkit.server.reading import decode
from bertkit.server.records import ChooseRequest, ClassifyRequest, QuestionRequest, TagRequest
from bertkit.server.shapes import suggest_field, suggest_value


@pytest.mark.parametrize(
    ("record", "path", "hint"),
    [
        (QuestionRequest, "inputs", 'Send {"question": ..., "context": ...}.'),
        (QuestionRequest, "inputs.question", "Send a text."),
        (ChooseRequest, "inputs", 'Send {"prompt": ..., "choices": ...}.'),
        (ClassifyRequest, "inputs[0].text", "Send a text."),
        (ClassifyRequest, "inputs", 'Send a text or {"text": ...} or a list.'),
        (ClassifyRequest, "truncate", "Send true or false."),
        (ClassifyRequest, "parameters.function_to_apply", 'Send "softmax" or "sigmoid" or "none".'),
        (TagRequest, "parameters.nowhere[3]", ""),
    ],
)
def test_a_hint_says_what_a_field_may_be(record: type[Any], path: str, hint: str) -> None:
    found, expected = (set(each.strip("Send .").split(" or ")) for each in (suggest_value(record, path), hint))
    assert found == expected  # the library orders the members of a union


@pytest.mark.parametrize(
    ("path", "name", "hint"),
    [("", "input", 'Did you mean "inputs"?'), ("parameters", "topk", 'Did you mean "top_k"?'), ("", "zzz", "")],
)
def test_a_misspelt_field_is_found_among_those_of_its_object(path: str, name: str, hint: str) -> None:
    assert suggest_field(ClassifyRequest, path, name) == hint


@pytest.mark.parametrize(
    ("body", "record", "field", "hint"),
    [
        (b'{"inputs": "When?"}', QuestionRequest, "inputs", 'Send {"question": ..., "context": ...}.'),
        (b'{"inputs": "A", "parameters": {"topk": 3}}', ClassifyRequest, "parameters.topk", 'Did you mean "top_k"?'),
        (
            b'{"inputs": "A", "parameters": {"aggregation_strategy": "bad"}}',
            TagRequest,
            "parameters.aggregation_strategy",
            '"simple"',
        ),
    ],
)
def test_an_error_of_a_body_has_the_hint(body: bytes, record: type[Any], field: str, hint: str) -> None:
    with pytest.raises(ServerError) as caught:
        decode(body, record)
    assert caught.value.field == field
    assert caught.value.hint is not None
    assert hint in caught.value.hint
    assert caught.value.message.endswith(caught.value.hint)
