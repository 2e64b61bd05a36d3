"""Parts of model cards that are made from the record of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.report.run_card import base_name, changed_settings, command_of, source_row
from bertkit.training.optimizer import OptimizerConfig


def test_changed_settings_are_those_that_differ_from_the_defaults() -> None:
    default = OptimizerConfig()
    assert changed_settings(default, default) == []
    assert changed_settings(replace(default, lr=0.125, beta2=0.5), default) == [("lr", "0.125"), ("beta2", "0.5")]


@pytest.mark.parametrize(
    ("program", "name"),
    [("/usr/lib/bertkit/cli/main.py", "bertkit"), ("/x/__main__.py", "bertkit"), ("/x/train.py", "train.py")],
)
def test_command_names_the_program_without_its_folder(program: str, name: str) -> None:
    assert command_of({"command": [program, "finetune", "a.csv"]}) == [name, "finetune", "a.csv"]


def test_row_of_a_data_file() -> None:
    file = {"file": "a.csv", "bytes": 1234, "sha256": "0f" * 32}
    assert source_row(file, "train: ") == ("train: a.csv", 1234, "0f" * 32)


def test_base_model_is_named_after_its_run_or_folder(tmp_path: Path) -> None:
    assert base_name(tmp_path / "my-run" / "model") == "my-run"
    assert base_name(tmp_path / "bert-base-uncased") == "bert-base-uncased"
