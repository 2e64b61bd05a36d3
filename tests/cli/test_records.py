"""track and config show."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workspace import run, run_json


def test_every_setting_has_its_origin(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {each["path"]: each for each in run_json(capsys, "config", "show", workspace / "run", "--json")}
    origins = {path: each["origin"] for path, each in settings.items()}
    assert origins["save_every"] == f"{workspace / 'run.toml'}:1"
    assert origins["schedule.decay"] == f"{workspace / 'run.toml'}:3"
    assert origins["steps"] == "--steps"
    assert origins["evaluate_every"] == origins["encoder.max_positions"] == "--set"
    assert origins["encoder.num_layers"] == "--size 1/12/2"
    assert origins["precision"] == "measured"
    assert origins["seed"] == "default"
    assert settings["schedule.decay"]["value"] == "linear"


def test_origins_are_shown_on_request(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("config", "show", workspace / "run", "--origin")
    printed = capsys.readouterr().out
    assert printed.split()[:3] == ["setting", "value", "origin"]
    assert "'linear'" in printed
    run("config", "show", workspace / "run")
    assert "--steps" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_metrics_are_written_for_tensorboard(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("track", workspace / "run", "--follow")
    assert "records in" in capsys.readouterr().err
    assert list((workspace / "run" / "tensorboard").iterdir())
