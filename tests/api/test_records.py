"""track and config_show from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import bertkit
from bertkit.runs import read_metrics


def test_settings_have_their_origin(workspace: Path) -> None:
    settings = {each.path: each for each in bertkit.config_show(str(workspace / "tuned"))}
    assert (settings["seeds"].value, settings["seeds"].origin) == (2, "--seeds")
    assert settings["optimizer.lr"].origin == "default for small models"
    assert settings["optimizer.weight_decay"].origin == "default"
    assert settings["layer_decay"].origin == "default"  # an option, too


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_all_records_are_replayed(workspace: Path) -> None:
    assert bertkit.track(workspace / "run") == len(read_metrics(workspace / "run" / "metrics.jsonl"))
