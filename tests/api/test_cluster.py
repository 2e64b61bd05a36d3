"""Runs that are divided among the nodes of a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.ray_nodes import two_nodes
from tests.tiny_runs import model as model
from tests.tiny_runs import no_pictures as no_pictures
from tests.tiny_runs import table as table

import bertkit
from bertkit.errors import BertkitError
from bertkit.sweeps import sweep
from bertkit.sweeps.results import SweepResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_pictures"), pytest.mark.filterwarnings("ignore")]


def tune(table: Path, model: Path, output: Path, **options: Any) -> SweepResult:
    grid = ["lr=1e-3,1e-2", "batch_size=13,33"]
    return bertkit.tune(table, model=model, output=output, grid=grid, **{"epochs": 1, "progress": "quiet", **options})


def test_a_sweep_on_a_cluster_has_the_scores_of_one_here(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("trained in this process")

    with two_nodes(), monkeypatch.context() as patch:
        patch.setattr(sweep, "run_seeds", refuse)
        made = tune(table, model, tmp_path / "cluster", engine="ray")
        with pytest.raises(BertkitError, match="nosuch"):
            tune(table, model, tmp_path / "bad", engine="ray", set=["nosuch=1"])
    expected = tune(table, model, tmp_path / "here")
    assert [(each.settings, each.scores) for each in made.points] == [
        (each.settings, each.scores) for each in expected.points
    ]
    assert len(made.points) == 4
