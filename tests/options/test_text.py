"""The options of the verbs for text have the choices of the modules that take them."""

from __future__ import annotations

import typing

from bertkit.data.sources import Boundary, ReadOptions
from bertkit.formats.decoding import BadBytes
from bertkit.options.text import PrepareOptions, TokenizerTrainOptions
from bertkit.text.normalization import UnicodeForm


def test_choices_of_prepare_are_those_of_the_reader() -> None:
    hints = typing.get_type_hints(PrepareOptions)
    assert typing.get_args(hints["boundary"]) == typing.get_args(Boundary)
    assert typing.get_args(hints["on_bad_bytes"]) == typing.get_args(BadBytes)


def test_defaults_of_prepare_are_those_of_the_reader() -> None:
    options, defaults = PrepareOptions((), tokenizer="t", output="o"), ReadOptions()
    assert (options.boundary, options.field, options.on_bad_bytes) == (
        defaults.boundary,
        defaults.field,
        defaults.on_bad_bytes,
    )


def test_choices_of_the_unicode_form_are_those_of_the_tokenizer() -> None:
    form = typing.get_type_hints(TokenizerTrainOptions)["unicode_form"]
    assert set(typing.get_args(typing.get_args(form)[0])) == set(typing.get_args(UnicodeForm))
