"""pretrain from Python: which settings win, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertkit import api
from bertkit.errors import BertkitError
from bertkit.pretraining.planning import PretrainPlan
from bertkit.pretraining.run import PretrainResult


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.pretraining.planning._SECONDS_TO_MEASURE", 0.01)


def test_a_plan_needs_no_output(workspace: Path) -> None:
    plan = api.pretrain(
        workspace / "data", size="1/12/2", steps=9, seq_length=13, batch_size=3, plan=True, progress="quiet"
    )
    assert isinstance(plan, PretrainPlan)
    assert plan.steps == 9


def test_options_win_over_the_file_of_settings_and_set_over_options(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("steps = 1\nseed = 3\nbatch_size = 5\nseq_length = 13\n")
    output = tmp_path / "run"
    api.pretrain(
        workspace / "data",
        output=output,
        size="1/12/2",
        config=tmp_path / "run.toml",
        batch_size=7,
        seed=4,
        set=["seed=5"],
        progress="quiet",
    )
    settings = {each.path: (each.value, each.origin) for each in api.config_show(output)}
    assert settings["steps"] == (1, f"{tmp_path / 'run.toml'}:1")
    assert settings["batch_size"] == (7, "--batch-size")
    assert settings["seed"] == (5, "--set")
    assert settings["encoder.num_layers"] == (1, "--size 1/12/2")


@pytest.mark.parametrize("names", [("a.txt",), ("a.txt", "b.txt")])
def test_one_or_two_long_files_are_enough_for_next_sentence_pairs(
    workspace: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Some of each file is held out, and training and evaluation both have two documents or more."""
    text = (workspace / "a.txt").read_text().replace("\n\n", "\n")
    for name in names:
        (tmp_path / name).write_text("".join(f"{name} begins here.\n{text}" for _ in range(2)))
    data = tmp_path / "data"
    manifest = api.prepare(
        [tmp_path / name for name in names], tokenizer=workspace / "tok", output=data, progress="quiet"
    )
    assert manifest.documents == len(names)
    assert 0 < manifest.heldout_tokens < manifest.tokens / 10
    done = api.pretrain(data, output=tmp_path / "run", size="1/12/2", seq_length=13, steps=2, progress="quiet")
    assert isinstance(done, PretrainResult)
    assert {"mlm", "nsp"} <= done.heldout.keys()


def test_a_run_needs_data_and_an_output(workspace: Path) -> None:
    for data in (None, workspace / "data"):
        with pytest.raises(BertkitError, match="pretrain needs DATA and -o RUN, or --resume RUN"):
            api.pretrain(data, progress="quiet")


@pytest.mark.parametrize("options", [{"architecture": "bert"}, {"plan": True}, {"output": "elsewhere"}, {"data": "d"}])
def test_a_resumed_run_keeps_what_it_is(workspace: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BertkitError, match="a resumed run has its data, its folder and its architecture"):
        api.pretrain(resume=workspace / "run", **options)
