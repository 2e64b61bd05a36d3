"""Verbs are Python functions that are made from records of options."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import bertkit
from bertkit.api.verb import verb
from bertkit.errors import BertkitError, usage_error
from bertkit.machine.device import DEVICE, device_record
from bertkit.options.command import spell_verb
from bertkit.options.description import list_options
from bertkit.options.inputs import ModelPath
from bertkit.options.job import JobOptions, ModelJobOptions
from bertkit.options.verbs import VERBS


@dataclass(frozen=True, kw_only=True)
class PressOptions(JobOptions):
    """Press flowers."""

    flower: str = field(kw_only=False)
    """Which flower."""
    book: str
    """In which book."""
    days: int = 7
    """For how long."""


@verb(PressOptions)
def press(options: PressOptions) -> tuple[str, int]:
    """The flower, and how long it took."""
    return f"{options.flower} in {options.book}", options.days


def test_arguments_become_the_record() -> None:
    assert press("rose", book="atlas") == ("rose in atlas", 7)
    assert press(flower="rose", book="atlas", days=3) == ("rose in atlas", 3)


def test_options_in_a_message_are_spelled_for_python_in_a_note() -> None:
    @verb(PressOptions)
    def fail(options: PressOptions) -> None:
        """Nothing."""
        raise usage_error(f"{options.flower} needs another --days. First: bertkit prepare FILE --book BOOK")

    with pytest.raises(BertkitError, match="rose needs another --days") as caught:
        fail("rose", book="atlas")
    assert caught.value.__notes__ == ["in Python: days="], "a command is one for the shell"


def test_the_signature_is_that_of_the_record() -> None:
    signature = inspect.signature(press)
    assert list(signature.parameters) == ["flower", "book", "days", "progress"]
    assert signature.parameters["days"].default == 7
    assert signature.parameters["book"].kind is inspect.Parameter.KEYWORD_ONLY
    assert signature.return_annotation == tuple[str, int]
    assert (press.__name__, press.__module__) == ("press", __name__)


def test_the_documentation_has_every_parameter_and_the_result() -> None:
    assert press.__doc__ is not None
    assert press.__doc__.startswith("Press flowers.\n\nParameters\n----------\nflower : str\n    Which flower.\n")
    assert "days : int, default 7\n    For how long.\n" in press.__doc__
    assert press.__doc__.endswith("Returns\n-------\nThe flower, and how long it took.")


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        (("rose",), {}, "press: missing a required .*'book'"),
        (("rose", "atlas"), {}, "press: too many positional arguments"),
        (
            ("rose",),
            {"book": "atlas", "day": 3},
            "press: got an unexpected keyword argument 'day'. Did you mean \"days\"",
        ),
        (("rose",), {"place": "attic"}, "press: got an unexpected keyword argument 'place'.$"),
    ],
)
def test_wrong_arguments_name_the_verb(arguments: tuple[str, ...], named: dict[str, object], message: str) -> None:
    call: Callable[..., object] = press
    with pytest.raises(TypeError, match=message):
        call(*arguments, **named)


@pytest.mark.parametrize(
    ("name", "arguments", "named", "message"),
    [
        (
            "predict",
            ("run", ["a text"]),
            {"output": "o.csv"},
            "it must be Path or str or DataFrame or Dataset",
        ),
        ("predict", ("run", None), {"output": "o.csv"}, "input is None; it must be"),
        (
            "embed",
            ("m", "a.txt"),
            {"output": "v.npy", "pool": "avg"},
            "'avg'; it must be 'cls' or 'mean' or 'max'",
        ),
        ("embed", ("m", "a.txt"), {"output": None}, "output is None; it must be Path or str"),
        ("export", ("run",), {"to": "tf", "output": "o"}, "to is 'tf'; it must be 'huggingface' or"),
        ("embed", ("m", "a.txt"), {"output": "v.npy", "overwrite": "no"}, "overwrite is 'no'; it must be bool"),
        ("explain", ("run", 3), {"output": "o.html"}, "text is 3; it must be str"),
        ("pretrain", ("data",), {"set": 3}, r"set is 3; it must be Sequence\[str\] or Mapping"),
        ("predict", ("run", "a.csv"), {"output": "o", "ensemble": 3}, "ensemble is 3; it must be Sequence"),
        ("pretrain", ("data",), {"set": [3]}, r"set is \[3\]; it must be Sequence\[str\] or Mapping"),
        ("pretrain", ("data",), {"mix": [3]}, r"mix is \[3\]; it must be Sequence\[str\]"),
        ("corpus_check", ([3],), {}, r"files is \[3\]; it must be Sequence"),
        (
            "finetune",
            ("a.csv",),
            {"model": "m", "output": "o", "class_weights": [1, 2]},
            r"class_weights is \[1, 2\]; it must be str or Mapping",
        ),
    ],
)
def test_a_value_of_another_type_is_refused(
    name: str, arguments: tuple[object, ...], named: dict[str, object], message: str
) -> None:
    with pytest.raises(BertkitError, match=message):
        getattr(bertkit, name)(*arguments, **named)


def test_a_set_is_no_list() -> None:
    with pytest.raises(BertkitError, match="files is a set, which has no order, and must be a list"):
        bertkit.corpus_check({"a.txt"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("corpus_check", ("a.jsonl",), {}),
        ("prepare", ("a.txt",), {"tokenizer": "tok", "output": "data"}),
        ("pretrain", ("data",), {"set": "lr=3"}),
        ("pretrain", ("data",), {"mix": "books=0.25"}),
        ("serve", (["run"],), {"cors_origin": "https://example.org"}),
        ("tune", ("a.csv",), {"model": "m", "output": "o", "grid": "lr=1,2"}),
        ("predict", ("run", "a.csv"), {"output": "o", "ensemble": "other"}),
    ],
)
def test_a_string_in_place_of_a_list_is_refused(name: str, arguments: tuple[str, ...], named: dict[str, str]) -> None:
    with pytest.raises(BertkitError, match=r'^\w+ is "[^"]+", and must be a list: \["'):
        getattr(bertkit, name)(*arguments, **named)


@pytest.mark.parametrize("name", VERBS)
def test_help_explains_every_parameter_of_every_verb(name: str) -> None:
    function = next(getattr(bertkit, each) for each in bertkit.__all__ if spell_verb(each) == name)
    options = list_options(VERBS[name])
    assert list(inspect.signature(function).parameters) == [option.name for option in options]
    for option in options:
        assert f"\n{option.name} : " in function.__doc__
    assert len(function.__doc__.partition("Returns\n-------\n")[2]) > 10


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ModelJobOptions):
    """Measure a model."""

    model: ModelPath = field(kw_only=False)
    """Which model."""


@verb(MeasureOptions)
def measure(options: MeasureOptions) -> dict[str, str]:
    """The device."""
    return device_record()


@pytest.mark.parametrize(
    ("name", "arguments", "named", "message"),
    [
        ("glue_table", ([],), {}, "runs is empty: give at least one"),
        ("corpus_check", ([],), {}, "files is empty: give at least one"),
        ("pretrain", (".",), {"output": "run", "size": ""}, "size is empty: give a value, or leave it out"),
        ("pretrain", (".",), {"output": "run", "architecture": ""}, "architecture is empty"),
        ("predict", ("run", "a.csv"), {"output": ""}, "output is empty"),
        ("predict", ("", "a.csv"), {"output": "b.csv"}, "run is empty"),
        ("finetune", ("a.csv",), {"model": "", "output": "run"}, "model is empty"),
        ("corpus_check", (["a.txt", ""],), {}, "files has an empty path"),
    ],
)
def test_empty_lists_and_options_are_refused(
    name: str, arguments: tuple[object, ...], named: dict[str, str], message: str
) -> None:
    with pytest.raises(BertkitError, match=message):
        getattr(bertkit, name)(*arguments, **named)


def test_a_verb_runs_on_the_device_that_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICE, raising=False)
    assert measure(".", device="cpu")["reason"] == "cpu was chosen"
    assert DEVICE not in os.environ


def test_paths_are_checked_before_the_work() -> None:
    with pytest.raises(BertkitError, match="no model at nowhere"):
        measure("nowhere")
