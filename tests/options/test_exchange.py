"""The options of import and export."""

from __future__ import annotations

from typing import get_args, get_type_hints

from bertkit.options.description import list_options
from bertkit.options.exchange import ExportOptions, ImportOptions


def test_both_need_a_model_and_an_output() -> None:
    required = [
        [option.name for option in list_options(each) if option.required] for each in (ImportOptions, ExportOptions)
    ]
    assert required == [["source", "output"], ["run", "to", "output"]]


def test_the_formats_of_export_are_listed() -> None:
    assert "huggingface" in get_args(get_type_hints(ExportOptions)["to"])
