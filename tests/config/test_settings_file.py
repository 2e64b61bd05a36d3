from __future__ import annotations

from pathlib import Path

import pytest
from tests.config.jobs import JOB, Job, Network, Optimizer

from bertkit.config.settings import apply
from bertkit.config.settings_file import read_settings
from bertkit.errors import BertkitError

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


@pytest.mark.parametrize(
    ("name", "text", "lines"), [("run.toml", TOML, (2, 5, 6, 9)), ("run.json", JSON, (2, 4, 4, 6))]
)
def test_settings_of_a_file_know_their_lines(
    tmp_path: Path, name: str, text: str, lines: tuple[int, int, int, int]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    settings = read_settings(path)
    assert apply(JOB, settings) == Job(
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
    assert read_settings(tmp_path / name)[-1].origin == f"{tmp_path / name}:{line}"


@pytest.mark.parametrize(("name", "text"), [("a.toml", "steps = 7"), ("a.JSON", '{"steps": 7}')])
def test_a_byte_order_mark_and_capitals_in_the_name_of_a_file_change_nothing(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert [(each.path, each.value) for each in read_settings(tmp_path / name)] == [("steps", 7)]


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
        apply(JOB, read_settings(path))
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
        read_settings(tmp_path / name)


def test_a_file_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(BertkitError, match=r"missing\.toml: No such file"):
        read_settings(Path("missing.toml"))
