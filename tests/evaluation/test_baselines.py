from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.evaluation.baselines import find_baselines
from bertkit.evaluation.evaluate import evaluate_model, read_split
from bertkit.evaluation.report import Evaluation
from bertkit.finetuning.results import read_finished_run
from bertkit.inference.pipeline import load
from bertkit.report.progress import Progress

QUIET = Progress("quiet")
OPTIONS: dict[str, Any] = {"epochs": 1, "batch_size": 33, "progress": "quiet"}


@pytest.fixture
def refuse_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise AssertionError("a recorded baseline is fitted again")

    monkeypatch.setattr("bertkit.evaluation.baselines.fit_baselines", fail)


@pytest.fixture
def train(table: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(table, tmp_path / "train.csv"))


@pytest.fixture
def run(model: Path, train: Path, tmp_path: Path) -> Path:
    bertkit.finetune(train, model=model, output=tmp_path / "run", **OPTIONS)
    return tmp_path / "run"


def evaluate(folder: Path, data: Path | None = None, *, split: str = "dev", baseline: bool = True) -> Evaluation:
    pipeline = load(folder)
    return evaluate_model(pipeline, read_split(pipeline.task, data, split), None, QUIET, baseline=baseline)


@pytest.mark.usefixtures("refuse_to_fit")
def test_the_same_dev_examples_have_the_recorded_baselines(run: Path) -> None:
    result = read_finished_run(run / "model")
    assert result is not None
    found = evaluate(run)
    assert found.baselines == result.baselines
    assert found.verdict.startswith("accuracy: ") and "this model" in found.verdict


def write_table(path: Path) -> Path:
    path.write_text("id,review,label\n" + "".join(f"{row},early river {row},good\n" for row in range(5)) + "7,x,bad\n")
    return path


def test_other_examples_are_compared_with_methods_fitted_again(run: Path, tmp_path: Path) -> None:
    found = evaluate(run, write_table(tmp_path / "other.csv"))
    assert [each.name for each in found.baselines] == ["most frequent answer", "bag of words"]
    majority = found.baselines[0].scores["accuracy"]
    assert majority in (pytest.approx(5 / 6), pytest.approx(1 / 6))  # the classes of train are nearly as frequent


def append(file: Path) -> None:
    file.write_text(file.read_text() + "999,early river,good\n")


@pytest.mark.parametrize(("change", "reason"), [(Path.unlink, "does not exist"), (append, "has changed since")])
def test_there_is_a_reason_where_the_training_data_is_not_there(
    change: Callable[[Path], None], reason: str, run: Path, train: Path, tmp_path: Path
) -> None:
    change(train)
    found = evaluate(run, write_table(tmp_path / "other.csv"))
    assert found.baselines == []
    assert found.verdict.startswith("no baseline to compare with: its training data") and reason in found.verdict


def test_train_is_not_compared_with_what_was_fitted_on_it(run: Path) -> None:
    assert "train is what it would be fitted on" in evaluate(run, split="train").verdict


def test_a_model_outside_of_a_run_has_unknown_training_data(run: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copytree(run / "model", tmp_path / "alone"))
    pipeline = load(alone)
    file = write_table(tmp_path / "other.csv")
    task = pipeline.task.with_files(dev=[file])
    fitted = find_baselines(alone, pipeline.task, task, "dev", task.examples("dev"))
    assert [each.name for each in fitted.baselines] == ["most frequent answer", "bag of words"]
    empty = type(task)(name="foreign", metric="accuracy", labels=task.labels).with_files(dev=[file])
    found = find_baselines(alone, empty, empty, "dev", empty.examples("dev"))
    assert found == ([], "no baseline to compare with: the training data of this model is not known", ())
    assert read_finished_run(alone) is None


def test_the_comparison_can_be_left_out(run: Path) -> None:
    found = evaluate(run, baseline=False)
    assert (found.baselines, found.verdict) == ([], "")


def test_the_page_and_the_record_have_the_verdict(run: Path) -> None:
    found = evaluate(run)
    page = (run / "evaluation-dev" / "report.html").read_text()
    assert f'<p class="verdict">{found.verdict}</p>' in page
    assert '<th scope="row">bag of words</th>' in page
    assert found.to_dict()["baselines"][1]["name"] == "bag of words"
    assert found.to_dict()["warnings"] == found.warnings != []
