"""What the page says about the training of a model."""

from __future__ import annotations

import base64
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import bertkit
from bertkit.evaluation.training_facts import read_training_facts, render_seeds, render_settings


@pytest.fixture(scope="module")
def run(model: Path, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "reviews"
    bertkit.finetune(table, model=model, output=output, epochs=2, batch_size=33, seeds=2, set=["schedule.warmup=0.25"])
    return output


def test_the_training_is_read_from_the_run(run: Path) -> None:
    facts = read_training_facts(run / "model")
    assert facts is not None
    assert [each.seed for each in facts.result.seeds] == [0, 1]
    settings = {path: (value, origin) for path, value, origin in facts.settings}
    assert settings["epochs"] == ("2", "--epochs")
    assert settings["schedule.warmup"] == ("0.25", "--set")
    assert settings["optimizer.lr"][0]
    assert not {"output", "seeds"} & settings.keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", facts.date)
    assert facts.machine.startswith("CPU, ")
    assert facts.command.startswith(Path(sys.argv[0]).name)


def test_a_model_outside_of_a_run_has_no_training(model: Path) -> None:
    assert read_training_facts(model) is None


def test_the_page_has_seeds_a_curve_settings_and_the_command(run: Path) -> None:
    facts = read_training_facts(run / "model")
    assert facts is not None
    seeds, settings = "".join(render_seeds(facts)), "".join(render_settings(facts))
    assert "mean" in seeds and "seed 1" in seeds
    image = base64.b64encode((run / "epochs.svg").read_bytes()).decode()
    assert f'src="data:image/svg+xml;base64,{image}"' in seeds
    assert "<img" not in "".join(render_seeds(replace(facts, curves=b""))), "the drawing was deleted"
    assert facts.date in settings and "schedule.warmup" in settings and "<pre>$ " in settings
