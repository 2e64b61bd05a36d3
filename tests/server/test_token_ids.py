"""Token ids in place of texts."""

from __future__ import annotations

import asyncio

import pytest

from bertkit.server.errors import ServerError
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.token_ids import read_ids


def read(inputs: str | list[int | str | list[int]], model: ServedModel) -> str | list[str]:
    return asyncio.run(read_ids(inputs, model, Limits(inputs=3), "input"))


def test_too_many_inputs_are_refused_before_they_are_read(loaded: list[ServedModel]) -> None:
    with pytest.raises(ServerError, match="batch size 4 > maximum allowed batch size 3"):
        read([[2000], [2000], [2000], [10**9]], loaded[0])


def test_ids_become_the_text_that_has_them(loaded: list[ServedModel]) -> None:
    tokenizer = loaded[0].pipeline.tokenizer
    ids = tokenizer.encode("the old river").ids
    assert read(ids, loaded[0]) == ["the old river"]
    framed = [tokenizer.start_id, *ids, tokenizer.end_id]
    assert read([framed, ids], loaded[0]) == ["the old river", "the old river"]
    assert read("a", loaded[0]) == "a"
    assert read(["a", "b"], loaded[0]) == ["a", "b"]


def test_ids_that_no_text_has_are_refused(loaded: list[ServedModel]) -> None:
    tokenizer = loaded[0].pipeline.tokenizer
    size = tokenizer.vocab_size
    for ids, message in (
        ([7, size], f"has the token id {size}"),
        ([-1], "has the token id -1"),
        ([tokenizer.mask_id], "no text has"),
    ):
        with pytest.raises(ServerError, match=message) as caught:
            read([ids], loaded[0])
        assert (caught.value.status, caught.value.field) == (422, "input[0]")
    with pytest.raises(ServerError, match="among texts"):
        read(["a", 7], loaded[0])
