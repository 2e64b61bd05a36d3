"""Commands are made from records of options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from cyclopts import App, CoercionError, MissingArgumentError, Parameter

from bertkit.cli import app
from bertkit.cli.commands import make_command
from bertkit.cli.verbosity import Verbosity
from bertkit.options.job import AnyPath, JobOptions, Options


@dataclass(frozen=True, kw_only=True)
class PressOptions(JobOptions):
    """Press flowers."""

    CONTINUES = True

    flowers: Sequence[AnyPath] = field(kw_only=False)
    """Which flowers."""
    book: AnyPath
    """In which book."""
    days: float | None = None
    """For how long."""
    weight: Literal["light", "heavy"] = "light"
    """What lies on top."""
    grid: Sequence[str] | Mapping[str, Sequence[object]] = ()
    """What is varied."""
    against: Sequence[Literal["moths", "mould"]] = ()
    """What is kept away."""


@dataclass(frozen=True, kw_only=True)
class NameOptions(Options):
    """Name a flower."""

    flower: AnyPath | None = field(default=None, kw_only=False)
    """Which flower."""


Call = tuple[object, dict[str, object]]
calls: list[Call] = []


def press(options: PressOptions, *, json: bool, verbosity: Verbosity) -> None:
    calls.append((options, {"json": json, "verbosity": verbosity}))


def name(options: NameOptions) -> None:
    calls.append((options, {}))


def call(verb: object, *words: str) -> Call:
    assert callable(verb)
    app = App(default_parameter=Parameter(consume_multiple=True, negative=()), suppress_keyboard_interrupt=False)
    app.default(make_command(verb))
    app(words, exit_on_error=False, print_error=False, result_action="return_none")
    return calls.pop()


def test_options_are_converted_to_the_types_of_the_fields() -> None:
    words = ("rose.txt", "lily.txt", "--book", "b", "--days", "3", "--weight", "heavy", "--grid", "a=1", "b=2")
    options, others = call(press, *words, "--json")
    assert options == PressOptions(
        (Path("rose.txt"), Path("lily.txt")), book=Path("b"), days=3.0, weight="heavy", grid=["a=1", "b=2"]
    )
    assert others == {"json": True, "verbosity": Verbosity()}


def test_defaults_are_those_of_the_record() -> None:
    options, others = call(press, "rose", "--book", "b")
    assert options == PressOptions((Path("rose"),), book=Path("b"))
    assert others["json"] is False


@pytest.mark.parametrize("words", [["moths", "mould"], ["moths,mould"], ["moths,", "mould"]])
def test_names_of_a_known_set_have_spaces_or_commas_between_them(words: list[str]) -> None:
    options, _ = call(press, "rose", "--book", "b", "--against", *words)
    assert isinstance(options, PressOptions)
    assert options.against == ["moths", "mould"]
    with pytest.raises(CoercionError, match=r'"moth"\. Choose from: "moths", "mould"\. Did you mean "moths"'):
        call(press, "rose", "--book", "b", "--against", "mould,moth")


@pytest.mark.parametrize(
    ("said", "shown"),
    [("", "interrupted."), ("stopped after 3 rows. Continue with the same command.", "stopped after 3 rows.")],
)
def test_an_interrupted_job_says_how_to_continue(said: str, shown: str) -> None:
    def stop(options: PressOptions, *, verbosity: Verbosity) -> None:
        raise KeyboardInterrupt(said)

    with pytest.raises(KeyboardInterrupt) as stopped:
        call(stop, "rose", "--book", "b")
    assert str(stopped.value) == f"{shown} Continue with the same command: bertkit stop rose --book b"
    with pytest.raises(KeyboardInterrupt) as stopped:
        make_command(stop)(Path("-"), book=Path("b"))
    assert str(stopped.value) == said, "what was read from a stream is gone"


@pytest.mark.parametrize(("words", "mode"), [(["--quiet"], "quiet"), (["--progress", "json"], "json"), ([], "auto")])
def test_a_job_has_the_progress_mode_of_the_command_line(words: list[str], mode: str) -> None:
    options, _ = call(press, "rose", "--book", "b", *words)
    assert isinstance(options, PressOptions)
    assert options.progress == mode


def test_an_optional_argument_may_be_left_out() -> None:
    assert call(name) == (NameOptions(), {})
    assert call(name, "rose") == (NameOptions(Path("rose")), {})


def test_a_required_option_is_asked_for() -> None:
    with pytest.raises(MissingArgumentError, match="--book"):
        call(press, "rose")


def test_help_is_that_of_the_record() -> None:
    command = make_command(press)
    assert command.__doc__ == "Press flowers."
    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["flowers", "book", "days", "weight", "grid", "against", "json", "verbosity"]
    assert parameters["days"].annotation.__metadata__[0].help == "For how long."


def test_the_help_keeps_what_looks_like_a_tag(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["fill", "--help"]) == 0
    assert "<mask>" in capsys.readouterr().out


def test_the_help_breaks_paragraphs_and_not_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["pretrain", "--help"]) == 0
    assert "``" not in capsys.readouterr().out
