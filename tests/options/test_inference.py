"""The options of fill and predict."""

from __future__ import annotations

import pytest

from bertkit.options.description import list_options
from bertkit.options.inference import FillOptions, PredictOptions
from bertkit.options.inputs import STREAM


def test_fill_shows_five_words_by_default() -> None:
    assert FillOptions("model", "a [MASK]").top_k == 5


def test_predict_needs_an_output() -> None:
    with pytest.raises(TypeError, match="output"):
        PredictOptions("run", "input.csv")  # type: ignore[call-arg]


def test_the_help_of_predict_names_the_stream_that_is_read_and_written() -> None:
    help = {option.name: option.help for option in list_options(PredictOptions)}
    assert f"; {STREAM} is stdin." in help["input"]
    assert f"; {STREAM} is stdout." in help["output"]
