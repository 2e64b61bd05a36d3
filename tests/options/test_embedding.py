"""The options of embed and search."""

from __future__ import annotations

from bertkit.options.description import list_options
from bertkit.options.embedding import EmbedOptions, SearchOptions


def test_the_model_is_an_argument_of_embed_and_an_option_of_search() -> None:
    required = [
        [(option.name, option.positional) for option in list_options(each) if option.required]
        for each in (EmbedOptions, SearchOptions)
    ]
    assert required == [
        [("model", True), ("input", True), ("output", False)],
        [("vectors", True), ("query", True), ("model", False)],
    ]
