"""The quickstart from text to report, in seconds."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.inference.pipeline import load
from bertkit.pretraining.record import PretrainRun
from bertkit.quick_start import run as quick_start_run
from bertkit.quick_start.run import quickstart
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics, read_run

pytestmark = pytest.mark.usefixtures("without_shape_checks")

KITCHEN = (
    ["cook", "baker", "guest", "host"],
    ["boils", "tastes", "salts"],
    ["soup", "rice", "bread", "fish", "corn", "meat"],
)
GARDEN = (
    ["farmer", "digger", "child", "dog"],
    ["waters", "plants", "cuts"],
    ["rose", "tree", "grass", "fern", "herb", "hay"],
)
TIMES = ("in the morning", "at noon", "in the evening", "at night", "on Sunday", "when it rains", "as it was told")


def write_packages(folder: Path) -> dict[str, Path]:
    """Two packages of 72 modules, with a docstring of seven sentences in each."""
    for package, words in (("kitchen", KITCHEN), ("garden", GARDEN)):
        (folder / package).mkdir(parents=True)
        for number, (person, action, thing) in enumerate(product(*words)):
            text = " ".join(f"The {person} {action} the {thing} {time}." for time in TIMES)
            (folder / package / f"m{number}.py").write_text(f'"""{text}"""\n', encoding="utf-8")
    return {package: folder / package for package in ("kitchen", "garden")}


def test_the_speed_is_measured_in_the_format_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class MeasuredError(Exception):
        """Raised in place of the trial steps."""

    def measure_step(run: PretrainRun, seconds: float) -> float:
        raise MeasuredError(run.precision)

    monkeypatch.setattr(quick_start_run, "choose_precision", lambda device: "bfloat16")
    monkeypatch.setattr(quick_start_run, "measure_step", measure_step)
    with pytest.raises(MeasuredError, match="bfloat16"):
        quickstart(tmp_path / "q", minutes=0.15, progress=Progress("quiet"), packages=write_packages(tmp_path / "site"))


FINE_TUNED = {"finetuned-untrained": 1e-3, "finetuned-initial-weights": 1e-3, "finetuned": 3e-4}
"""The learning rate of each start, by its folder."""


def test_quickstart_trains_and_reports(tmp_path: Path) -> None:
    begin = time.monotonic()
    packages = write_packages(tmp_path / "site")
    output = tmp_path / "quickstart"
    result = quickstart(output, minutes=0.15, progress=Progress("quiet"), packages=packages)
    assert result.baselines["most frequent answer"] == 0.5
    assert 0 <= result.baselines["bag of words"] <= 1
    assert list(result.scores) == ["untrained network", "co-occurrence counts", "pre-trained"]
    assert all(len(score.accuracies) == 3 and 0 <= score.mean <= 1 for score in result.scores.values())
    # How many steps there were, and so how low the first logged loss is, depends on the speed of the machine.
    records = read_metrics(output / "pretrained" / "metrics.jsonl")
    assert result.losses == [record["loss/mlm"] for record in records if record["kind"] == "train"]
    assert all(loss > 0 for loss in result.losses)
    assert result.blanks
    assert 0 < result.seconds < time.monotonic() - begin
    for file in (
        "corpus.jsonl",
        "task/train.csv",
        "task/dev.csv",
        "pretrained/training.svg",
        "finetuned/seed-2/epochs.svg",
    ):
        assert (output / file).stat().st_size, file

    lines = result.lines()
    assert max(map(len, lines[:10])) <= 120
    assert f"BERT-{result.size}" in lines[1]
    assert any(line.startswith("  most frequent answer    50.0%") for line in lines)
    assert lines[-1].startswith("  bertkit ")

    first, untrained = (read_run(output / f"finetuned-{start}/seed-1") for start in ("initial-weights", "untrained"))
    assert (first["run"]["from_scratch"], untrained["run"]["from_scratch"]) == (False, True)
    rates = {start: read_run(output / f"{start}/seed-1")["run"]["optimizer"]["lr"] for start in FINE_TUNED}
    assert rates == FINE_TUNED
    assert first["run"]["model"] == untrained["run"]["model"] == str(output / "initial-weights")

    blank = result.blanks[0]
    assert "[MASK]" in blank.text
    assert list(blank.guesses) == [each.word for each in load(output / "pretrained").fill(blank.text, top_k=4)[0]]
    assert load(result.scores["pre-trained"].folder).classify("The baker salts the bread.").label in packages


@pytest.mark.parametrize(("needed", "expected"), [(100, 476), (380, 196), (400, 180), (900, 180)])
def test_pretraining_has_its_share_on_a_busy_machine(
    needed: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten minutes; 576 seconds are divided, and at least 180 are for the pre-training."""
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    said: list[str] = []
    progress = Progress("quiet")
    monkeypatch.setattr(progress, "say", said.append)
    budget = quick_start_run._Budget(begin=0.0, seconds=600.0, processes=2)
    assert quick_start_run._seconds_to_pretrain(budget, needed, progress) == expected
    late = {400: "4 s", 900: "8 min"}
    assert [line.rpartition("takes about ")[2] for line in said] == [
        f"{late[seconds]} longer than 10 min" for seconds in late if seconds == needed
    ]


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for output in (tmp_path / "file" / "q", tmp_path / "file"):
        with pytest.raises(BertkitError, match=r"cannot write to .*file"):
            quickstart(output, progress=Progress("quiet"), packages={})


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BertkitError, match=r"is not empty\. Choose another -o folder"):
        quickstart(tmp_path, progress=Progress("quiet"), packages={})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
