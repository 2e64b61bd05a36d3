"""Ranges of numbers, and a walk over all settings and options with numbers that make no sense."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from bertkit.cli import app
from bertkit.config.records import to_plain
from bertkit.config.settings import apply, parse_settings
from bertkit.encoder_types.architectures import find_encoder
from bertkit.encoder_types.words import WordReaderConfig
from bertkit.encoders.bert import BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.lookup import list_modules
from bertkit.options.command import spell_option
from bertkit.options.description import list_options
from bertkit.options.verbs import VERBS
from bertkit.pretraining.record import PretrainRun
from bertkit.ranges import PositiveInt, Range, Share, check_ranges, find_range, is_union
from bertkit.reproduction.scales import TINY
from bertkit.task_types import FileTask
from bertkit.task_types.records import TASK_TYPES

pytestmark = pytest.mark.usefixtures("without_shape_checks")

SENSELESS = ("-1", "0", "-0.5", "nan", "inf", "-inf", "1e30", "1e300", "1000000000000", "1" + "0" * 30)


@dataclass(frozen=True, kw_only=True)
class Oven:
    """An oven."""

    trays: PositiveInt | None = None
    fan: Share = 0.5
    heat: tuple[tuple[PositiveInt, Share], ...] = ()
    timers: Mapping[str, PositiveInt] = dataclasses.field(default_factory=dict)


def new_encoder(name: str) -> Any:
    kind: Any = find_encoder(name).config
    names = {field.name for field in dataclasses.fields(kind)}
    if "words" in names:
        return kind(words=WordReaderConfig(vocab_size=99, vector_size=5))
    return kind(vocab_size=99) if "vocab_size" in names else kind()


def new_task(kind: type[FileTask]) -> FileTask:
    names = {field.name for field in dataclasses.fields(kind) if field.default in (dataclasses.MISSING, ())}
    metric = "pearson" if kind is TASK_TYPES["regression"] else "accuracy"
    given: Mapping[str, Any] = {"name": "t", "metric": metric, "labels": ("no", "yes")}
    return kind(**{name: value for name, value in given.items() if name in names})


RECORDS: dict[str, Any] = {
    "pretrain": PretrainRun(data=Path("d"), output=Path("o"), encoder=BertConfig(vocab_size=99)),
    "reproduce": TINY,
    **{name: new_encoder(name) for name in list_modules("encoders")},
    **{
        f"finetune {name}": FinetuneRun(task=new_task(kind), model=Path("m"), output=Path("o"))
        for name, kind in TASK_TYPES.items()
    },
}


def is_number(hint: object) -> bool:
    return hint in (int, float) or any(is_number(each) for each in typing.get_args(hint))


def list_numbers(record: Any, prefix: str = "") -> Iterator[tuple[str, object, object]]:
    """(path, type, value) of every field that is a number, or has numbers in it."""
    for name, hint in typing.get_type_hints(type(record), include_extras=True).items():
        value = getattr(record, name)
        if typing.get_origin(hint) is typing.ClassVar:
            continue
        if dataclasses.is_dataclass(value):
            yield from list_numbers(value, f"{prefix}{name}.")
        elif is_number(hint):
            yield prefix + name, hint, value


NUMBERS = [(name, path, hint) for name, record in RECORDS.items() for path, hint, _ in list_numbers(record)]
OPTIONS = [
    (verb, option)
    for verb, record in VERBS.items()
    for option in list_options(record)
    if is_number(option.type) and str not in typing.get_args(option.type)  # a text has a grammar of its own
]


@pytest.mark.parametrize(
    ("range", "inside", "outside", "text"),
    [
        (Range(1, 5000), (1, 5000), (0, 5001, 0.9, -1), "from 1 to 5,000"),
        (Range(0, 1, above=True), (1e-300, 1), (0, -0.0, 1.0001), "above 0 and at most 1"),
        (Range(0, 0.5, below=True), (0, 0.4999), (0.5, -1e-9), "at least 0 and below 0.5"),
        (Range(0, 1, above=True, below=True), (0.5,), (0, 1), "above 0 and below 1"),
    ],
)
def test_a_range_has_its_ends_unless_it_says_otherwise(
    range: Range, inside: tuple[float, ...], outside: tuple[float, ...], text: str
) -> None:
    assert all(number in range for number in inside)
    assert not any(number in range for number in (*outside, float("nan"), float("inf"), float("-inf")))
    assert str(range) == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trays": 0}, "trays is 0; it must be from 1 to 1,000,000,000."),
        ({"trays": True}, "trays is True; it must be a whole number from 1 to 1,000,000,000."),
        ({"trays": 1.5}, "trays is 1.5; it must be a whole number from 1 to 1,000,000,000."),
        ({"fan": "full"}, "fan is 'full'; it must be a number from 0 to 1."),
        ({"fan": None}, "fan is None; it must be a number from 0 to 1."),
        ({"heat": ((3, 0.5), (0, 0.5))}, "heat is 0; it must be from 1 to 1,000,000,000."),
        ({"heat": ((3, 1.5),)}, "heat is 1.5; it must be from 0 to 1."),
        ({"timers": {"bread": -2}}, "timers.bread is -2; it must be from 1 to 1,000,000,000."),
    ],
)
def test_the_first_number_outside_its_range_is_named(changes: dict[str, Any], message: str) -> None:
    oven = Oven()
    for name, value in changes.items():
        object.__setattr__(oven, name, value)  # past the check of types in tests
    with pytest.raises(BertkitError) as caught:
        check_ranges(oven)
    assert str(caught.value) == message


def test_numbers_in_their_ranges_and_none_are_accepted() -> None:
    check_ranges(Oven())
    check_ranges(Oven(trays=3, fan=1, heat=((1, 0.0),), timers={"bread": 40}))


def test_alternatives_are_a_union_however_they_are_written() -> None:
    written = [Annotated[int, Range(1, 9)] | None, typing.Union["int", str], typing.Optional[int]]  # noqa: UP045
    assert all(map(is_union, written))
    assert not any(map(is_union, (int, list[int], typing.Literal["a", "b"], None)))


def test_the_range_of_a_type_is_found() -> None:
    assert find_range(PositiveInt | None) == Range(1, 1_000_000_000)
    assert find_range(tuple[Annotated[float, Range(0, 3)], ...]) == Range(0, 3)
    assert find_range(int | None) is None


@pytest.mark.parametrize(("name", "path", "hint"), NUMBERS, ids=[f"{name}:{path}" for name, path, _ in NUMBERS])
def test_every_setting_that_is_a_number_has_a_range(name: str, path: str, hint: object) -> None:
    assert find_range(hint) is not None


@pytest.mark.parametrize("name", RECORDS)
def test_the_defaults_are_in_their_ranges(name: str) -> None:
    check_ranges(RECORDS[name])


@pytest.mark.parametrize("text", SENSELESS)
@pytest.mark.parametrize("name", RECORDS)
def test_a_setting_has_a_number_of_its_range_or_is_an_error_that_states_it(name: str, text: str) -> None:
    record, number = RECORDS[name], float(text)
    for path, hint, default in list_numbers(record):
        entry = f"{path}.good" if isinstance(default, Mapping) else path
        value = f"[{text}]" if typing.get_origin(hint) is tuple else text
        range = find_range(hint)
        try:
            changed = apply(record, parse_settings([f"{entry}={value}"]))
        except BertkitError as error:
            message = str(error)
            assert message.startswith("--set: "), entry
            if number not in range:  # type: ignore[operator]
                assert path in message, entry
                assert f" {range}" in message or "a list" in message, (entry, message)
        else:
            assert number in range, f"{entry}={value} is accepted"  # type: ignore[operator]
            assert to_plain(changed) is not None


@pytest.mark.parametrize(("verb", "option"), OPTIONS, ids=[f"{verb} {option.name}" for verb, option in OPTIONS])
def test_an_option_outside_its_range_is_refused_before_any_work(
    verb: str, option: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = list_options(VERBS[verb])
    needed = ["x" for each in options if each.required and each.positional]
    named = [
        word for each in options if each.required and not each.positional for word in (spell_option(each.name), "y")
    ]
    hint = typing.get_type_hints(VERBS[verb], include_extras=True)[option.name]
    range = find_range(hint)
    assert range is not None
    assert str(range) in option.help
    for text in SENSELESS:
        if float(text) in range:
            continue
        assert app.run([*verb.split(), *needed, *named, f"{spell_option(option.name)}={text}"]) == WRONG_USAGE
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert option.name in lines[0].replace("-", "_")
        assert str(range) in lines[0] or f'"{text}" is not a whole number' in lines[0]
        assert not list(tmp_path.iterdir())
