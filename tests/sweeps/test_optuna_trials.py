"""Points sampled by optuna: the requested number, each trained once, also if a process is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.runs import read_metrics
from bertkit.sweeps import sweep as tuning
from bertkit.sweeps.optuna_trials import Journal, Trials, _format
from bertkit.sweeps.results import SweepResult
from bertkit.sweeps.search_space import Axis, Point

optuna = pytest.importorskip("optuna")

pytestmark = pytest.mark.usefixtures("without_shape_checks", "no_pictures")

GRID = ["lr=1e-5..1e-2", "batch_size=13,33", "schedule.warmup=0.0..0.2"]


def tune(table: Path, model: Path, output: Path, trials: int, **options: Any) -> SweepResult:
    options = {"epochs": 1, "grid": GRID, "progress": "quiet", **options}
    return bertkit.tune(table, model=model, output=output, trials=trials, **options)


def open_journal(output: Path) -> Any:
    return optuna.storages.JournalStorage(Journal(output / "journal.log"))


def states(output: Path) -> list[str]:
    storage = open_journal(output)
    return [trial.state.name for trial in optuna.load_study(study_name="sweep", storage=storage).get_trials()]


def test_any_first_seed_samples_several_points(tmp_path: Path) -> None:
    axis = Axis("optimizer.lr", low=1e-5, high=1e-2)
    trials = Trials(tmp_path / "journal.log", [axis], 2, "tpe", seed=2**32 - 1)
    assert trials.sample({}) and trials.sample({}) and not trials.sample({})
    assert len(trials.points()) == 2


def test_neighbouring_seeds_sample_other_points(tmp_path: Path) -> None:
    axis = Axis("optimizer.lr", low=1e-5, high=1e-2)
    sweeps = [Trials(tmp_path / f"{seed}.log", [axis], 6, "random", seed) for seed in (0, 1)]
    for trials in sweeps:
        while trials.sample({}):
            pass
    one, other = (set(trials.points()) for trials in sweeps)
    assert len(one) == 6
    assert not one & other


def test_a_line_that_another_process_could_not_finish_costs_that_line_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.log")
    journal.append_logs([{"number": 0}])
    with (tmp_path / "journal.log").open("ab") as file:
        file.write(b'{"number": 1, "crc')  # the disk was full
    journal.append_logs([{"number": 2}])
    assert journal.read_logs(0) == [{"number": 0}, {"number": 2}]


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_points_are_sampled_from_the_ranges(sampler: str, table: Path, model: Path, tmp_path: Path) -> None:
    result = tune(table, model, tmp_path, 3, sampler=sampler)
    assert len(result.points) == 3
    for point in result.points:
        assert 1e-5 <= float(point.settings["lr"]) <= 1e-2
        assert point.settings["batch_size"] in ("13", "33")
        assert 0 <= float(point.settings["schedule.warmup"]) <= 0.2
    assert states(tmp_path) == ["COMPLETE"] * 3


def test_a_sample_is_rounded_no_further_than_to_the_end_of_its_range() -> None:
    axis = Axis("optimizer.beta2", low=0.9, high=0.9999)
    assert [_format(value, axis) for value in (0.91234, 0.99987, 0.9001)] == ["0.912", "0.9999", "0.9"]


def test_trials_that_are_added_later_are_those_of_a_single_sweep(table: Path, model: Path, tmp_path: Path) -> None:
    first = tune(table, model, tmp_path / "twice", 2)
    assert tune(table, model, tmp_path / "twice", 2).points == first.points
    later = tune(table, model, tmp_path / "twice", 3)
    at_once = tune(table, model, tmp_path / "once", 3)
    assert [each.settings for each in later.points] == [each.settings for each in at_once.points]
    assert {each.folder for each in first.points} < {each.folder for each in later.points}


def test_a_point_that_was_sampled_and_not_trained_is_trained(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tuning, "run_seeds", die)
        tune(table, model, tmp_path, 3)
    assert states(tmp_path) == ["RUNNING"]
    assert len(tune(table, model, tmp_path, 3).points) == 3
    assert states(tmp_path) == ["COMPLETE"] * 3


def test_an_incomplete_trial_is_marked_as_failed(table: Path, model: Path, tmp_path: Path) -> None:
    tune(table, model, tmp_path, 1)
    study = optuna.load_study(study_name="sweep", storage=open_journal(tmp_path))
    study.ask().suggest_float("lr", 1e-5, 1e-2, log=True)
    assert len(tune(table, model, tmp_path, 3).points) == 3
    assert sorted(states(tmp_path)) == ["COMPLETE"] * 3 + ["FAIL"]


AXES = [Axis(name="lr", low=1e-5, high=1e-2)]


def sample(journal: Path, count: int) -> list[Point]:
    """The points of a sweep in which every point has the score 0.5."""
    trials = Trials(journal, AXES, count, "random", seed=7)
    while trials.sample(dict.fromkeys(trials.points(), 0.5)):
        pass
    return trials.points()


def test_damage_to_the_journal_costs_no_point(tmp_path: Path) -> None:
    expected = sample(tmp_path / "expected", 5)
    journal = tmp_path / "journal.log"
    assert sample(journal, 3) == expected[:3]
    content = journal.read_bytes()
    assert len(content) > 1000
    flipped = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in (3, 500, 1000)]
    for damaged in (content[:-5], content[:700], b"", content[:-1] + b"x", *flipped):
        journal.write_bytes(damaged)
        assert sample(journal, 5) == expected


def test_processes_share_the_journal(table: Path, model: Path, tmp_path: Path) -> None:
    arguments = ["tune", table, "--model", model, "-o", tmp_path, "--epochs", 1, "--trials", 6, "--grid", *GRID]
    command = [sys.executable, "-c", "import sys; from bertkit.cli.main import main; sys.exit(main())"]
    arguments += ["--progress", "plain"]
    with subprocess.Popen([*command, *map(str, arguments)], stdout=-3, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        output = [other.stderr.readline()]
        result = tune(table, model, tmp_path, 6)
        output += other.stderr.readlines()
        assert other.wait() == 0, output
    assert len(result.points) == len(list(tmp_path.glob("points/*/results.json"))) == 6
    assert states(tmp_path) == ["COMPLETE"] * 6
    for path in tmp_path.glob("points/*/metrics.jsonl"):
        steps = [each["step"] for each in read_metrics(path) if each["kind"] == "train"]
        assert len(steps) == len(set(steps))
