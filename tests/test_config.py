from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest

from bertkit import config
from bertkit.errors import BertkitError, usage_error


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    lr: float = 1e-4
    warmup: int = 99
    clip: float | None = None

    def needs(self) -> dict[str, str]:
        return {} if self.clip else {"warmup": "optimizer.clip"}


@dataclass(frozen=True, kw_only=True)
class Network:
    width: int = 12
    heads: int = 3

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise usage_error(f"width {self.width} does not divide by {self.heads} heads.")


@dataclass(frozen=True, kw_only=True)
class Job:
    data: Path
    network: Network = field(default_factory=Network)
    optimizer: Optimizer = field(default_factory=Optimizer)
    decay: Literal["linear", "constant"] = "linear"
    layers: tuple[int, ...] = (1, 2)
    names: tuple[str, ...] = ()
    keep: bool = False
    until: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Inner:
    width: int

    def __post_init__(self) -> None:
        raise usage_error(f"width is {self.width}, and it must be even.")


JOB = Job(data=Path("corpus"))


def test_a_record_is_written_to_json_and_read() -> None:
    job = Job(data=Path("a b"), optimizer=Optimizer(lr=0.1, clip=1.0), layers=(7,), until=Path("end"))
    assert config.from_json(Job, config.to_json(job)) == job
    assert config.to_json(job)["until"] == "end"


def test_settings_are_converted_and_the_last_one_wins() -> None:
    typed = config.parse_settings(
        ["optimizer.lr=1e-3", "optimizer.lr = 1e-2", "keep=true", "layers=[3,4]", "until=x=y", "optimizer.clip=null"]
    )
    job = config.apply(JOB, typed)
    assert job == Job(data=Path("corpus"), optimizer=Optimizer(lr=0.01), keep=True, layers=(3, 4), until=Path("x=y"))


def test_numbers_of_numpy_are_numbers() -> None:
    """The searches of scikit-learn draw settings as such."""
    drawn = {"optimizer.warmup": np.int64(7), "optimizer.lr": np.float32(0.5)}
    optimizer = config.apply(JOB, [config.Setting(path, value, "here") for path, value in drawn.items()]).optimizer
    assert (optimizer.warmup, optimizer.lr) == (7, 0.5)


def test_fields_of_one_record_change_together() -> None:
    job = config.apply(JOB, config.parse_settings(["network.width=13", "network.heads=13"]))
    assert job.network == Network(width=13, heads=13)


TOML = """
decay = "constant"  # as in the paper

[network]
width = 7
heads = 7

[optimizer]
"warmup" = 37
"""

JSON = """{
  "decay": "constant",
  "network": {
    "width": 7, "heads": 7},
  "optimizer": {
    "warmup": 37
  }
}"""


def test_settings_of_a_dictionary_are_those_of_the_same_words() -> None:
    words = config.apply(JOB, config.parse_settings(["network.width=13", "network.heads=13"]))
    assert config.apply(JOB, config.parse_settings({"network.width": 13, "network.heads": 13})) == words


@pytest.mark.parametrize(
    ("name", "text", "lines"), [("run.toml", TOML, (2, 5, 6, 9)), ("run.json", JSON, (2, 4, 4, 6))]
)
def test_settings_of_a_file_know_their_lines(
    tmp_path: Path, name: str, text: str, lines: tuple[int, int, int, int]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    settings = config.read_settings(path)
    assert config.apply(JOB, settings) == Job(
        data=Path("corpus"), decay="constant", network=Network(width=7, heads=7), optimizer=Optimizer(warmup=37)
    )
    assert [setting.origin for setting in settings] == [f"{path}:{line}" for line in lines]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("run.json", '{"network": {\n"decay": {}},\n"lr": "{",\n\n"decay": 5}', 5),
        ("run.toml", '[network]\nwidth = 7\n[ optimizer ]\n"the warmup" = 5', 4),
        ("run.toml", "[network]\nwidth = 7\n[ optimizer ]\n' warmup' . x = 5", 4),
    ],
)
def test_a_name_elsewhere_in_a_file_is_not_its_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text)
    assert config.read_settings(tmp_path / name)[-1].origin == f"{tmp_path / name}:{line}"


@pytest.mark.parametrize(("name", "text"), [("a.toml", "steps = 7"), ("a.JSON", '{"steps": 7}')])
def test_a_byte_order_mark_and_capitals_in_the_name_of_a_file_change_nothing(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert [(each.path, each.value) for each in config.read_settings(tmp_path / name)] == [("steps", 7)]


def test_every_value_has_an_origin() -> None:
    settings = [
        *config.settings_of(Network(width=6), "--size small", "network"),
        config.Setting("keep", True, "--keep"),
    ]
    found = config.origins(config.apply(JOB, settings), settings)
    assert found["network.width"] == found["network.heads"] == "--size small"
    assert found["keep"] == "--keep"
    assert found["optimizer.lr"] == "default"


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("\n[optimizer]\nwamup = 1", "{}:3: unknown key optimizer.wamup. Did you mean optimizer.warmup?"),
        ("optimizer.wamup = 1", "{}:1: unknown key optimizer.wamup. Did you mean optimizer.warmup?"),
        ("network.warmup = 1", "{}:1: unknown key network.warmup. Did you mean optimizer.warmup?"),
        ("[optimiser]\nlr = 1", "{}:2: unknown key optimiser.lr. Did you mean optimizer.lr?"),
        ('optimizer.lr = "fast"', '{}:1: optimizer.lr is "fast"; expected a number.'),
        ("keep = 1", "{}:1: keep is 1; expected true or false."),
        ('decay = "sqrt"', '{}:1: decay is "sqrt"; expected linear or constant.'),
        ("optimizer = 3", "{}:1: optimizer is not one value; set its fields."),
        ("decay.rate = 3", "{}:1: decay has no fields."),
        ("network.heads = 5", "{}:1: width 12 does not divide by 5 heads."),
        ("a = \n", "{}: Invalid value (at line 1, column 5)."),
        ("[optimiser]", "{}:1: unknown key optimiser."),
        ("keep = {}", "{}:1: keep is {{}}; expected true or false."),
    ],
)
def test_errors_name_the_line_and_the_nearest_spelling(tmp_path: Path, toml: str, message: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(toml)
    with pytest.raises(BertkitError) as caught:
        config.apply(JOB, config.read_settings(path))
    assert str(caught.value) == message.format(path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "a = " + "[" * 5000, "recursion"),
        ("a.toml", ".".join("a" * 3000) + " = 1", "recursion"),
        ("a.json", "[" * 100_000, "its values are nested too deeply"),
        ("a.json", '{"keep": true, "keep": false}', 'more than one field "keep"'),
    ],
)
def test_files_that_nest_too_deeply_or_repeat_a_key_are_errors(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BertkitError, match=rf"{name}: .*{message}"):
        config.read_settings(tmp_path / name)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("optimizer.lr", "--set optimizer.lr: expected path.to.field=value."),
        ("optimizer.warmup=many", "--set: optimizer.warmup is many; expected a whole number."),
        ("optimizer.clip=none of it", "--set: optimizer.clip is none of it; expected a number or null."),
        ("layers=[1", "--set: layers is [1; expected "),
        ("names=[mlm]", "--set: names is [mlm]; expected a list in brackets, each item text in double quotes."),
        ("layers=" + "[" * 100_000, "--set: layers is [[["),
    ],
)
def test_errors_on_the_command_line(typed: str, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        config.apply(JOB, config.parse_settings([typed]))
    assert str(caught.value).startswith(message)


@dataclass(frozen=True, kw_only=True)
class Models:
    by_name: Mapping[str, Network] = field(default_factory=dict)
    in_order: tuple[Network, ...] = ()
    perhaps: Network | None = None


def test_unknown_keys_are_found_in_mappings_lists_and_optional_records() -> None:
    models = Models(by_name={"lr": Network(), "wide": Network(width=99)}, in_order=(Network(),), perhaps=Network())
    assert config.from_json(Models, config.to_json(models)) == models
    for value in ({"by_name": {"a": {"widht": 1}}}, {"in_order": [{"widht": 1}]}, {"perhaps": {"widht": 1}}):
        with pytest.raises(BertkitError, match=r"unknown key .*widht"):
            config.from_json(Models, value)


def test_a_record_with_an_unknown_key_is_an_error() -> None:
    record = config.to_json(JOB)
    record["optimizer"]["wamup"] = 1
    with pytest.raises(BertkitError, match=r"run.json: unknown key optimizer.wamup. Did you mean optimizer.warmup\?"):
        config.from_json(Job, record, source="run.json")
    with pytest.raises(BertkitError, match=r"run\.json: Expected `float`, got `str`"):
        config.from_json(Job, {"data": "x", "optimizer": {"lr": "1"}}, source="run.json")
    with pytest.raises(BertkitError, match=r"missing\.toml: No such file"):
        config.read_settings(Path("missing.toml"))


def test_an_error_of_a_record_inside_of_another_is_a_sentence() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Outer:
        inner: Inner

    with pytest.raises(BertkitError, match=r"^run\.json: width is 3, and it must be even\.$"):
        config.from_json(Outer, {"inner": {"width": 3}}, source="run.json")


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("learning_rate=1", "optimizer.lr"),
        ("network.learning_rate=1", "optimizer.lr"),
        ("warmup_steps=1", "optimizer.warmup"),
    ],
)
def test_the_name_that_other_libraries_have_for_a_setting_is_understood(typed: str, near: str) -> None:
    with pytest.raises(BertkitError, match=rf"unknown key .* Did you mean {near}\?$"):
        config.apply(JOB, config.parse_settings([typed]))


@dataclass(frozen=True, kw_only=True)
class Named:
    kind: ClassVar[str] = "named"

    size: int = 1


def test_what_belongs_to_the_class_is_no_setting() -> None:
    with pytest.raises(BertkitError, match=r"unknown key kind\.$"):
        config.apply(Named(), config.parse_settings(["kind=x"]))
    with pytest.raises(BertkitError, match=r"unknown key kind\."):
        config.from_json(Named, {"kind": "x"}, source="run.json")


def test_a_setting_that_others_switch_off_is_refused() -> None:
    settings = [config.Setting(path, value, "--set") for path, value in (("optimizer.warmup", 3), ("keep", True))]
    job = config.apply(Job(data=Path("d")), settings)
    with pytest.raises(BertkitError, match=r"^--set: optimizer\.warmup has no effect without optimizer\.clip"):
        config.refuse_without_effect(job, settings)
    config.refuse_without_effect(config.apply(job, [config.Setting("optimizer.clip", 1.0, "--set")]), settings)


@dataclass(frozen=True, kw_only=True)
class Refusing:
    steps: int = 1
    model: str = "a"

    def __post_init__(self) -> None:
        if self.steps > 1:
            raise BertkitError("task.steps is 2, and runs/model has 1 (--model): leave out task.steps.")


@pytest.mark.parametrize("order", [("steps", "model"), ("model", "steps")])
def test_an_error_is_the_fault_of_the_setting_whose_path_it_has(order: tuple[str, str]) -> None:
    values: dict[str, object] = {"steps": 2, "model": "b"}
    with pytest.raises(BertkitError, match=r"^the steps: task\.steps is 2"):
        config.apply(Refusing(), [config.Setting(name, values[name], f"the {name}") for name in order])
