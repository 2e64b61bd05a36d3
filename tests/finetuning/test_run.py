from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_runs import WORDS

import bertkit
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.finetuning import run as finetuning
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult, read_results
from bertkit.finetuning.train_seed import train_seed
from bertkit.runs import read_metrics, read_run
from bertkit.user_tables.guess import guess

pytestmark = pytest.mark.usefixtures("without_shape_checks")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 33, "progress": "quiet"}


def finetune(table: Path, model: Path, output: Path, **options: Any) -> FinetuneResult:
    return bertkit.finetune(table, model=model, output=output, **{**QUICK, **options})


def interrupt_seed_1(monkeypatch: pytest.MonkeyPatch, note: Callable[[Any, int], object]) -> list[object]:
    """What ``note`` says about each seed that is trained; seed 1 is interrupted the first time."""
    noted: list[object] = []

    def train(data: Any, seed: int, *more: Any) -> Any:
        noted.append(note(data, seed))
        if seed == 1 and len(noted) == 2:
            raise KeyboardInterrupt
        return train_seed(data, seed, *more)

    monkeypatch.setattr(finetuning, "train_seed", train)
    return noted


def test_a_run_folder_holds_results_plots_and_a_model(table: Path, model: Path, tmp_path: Path) -> None:
    result = finetune(table, model, tmp_path / "run", seeds=2)
    assert read_results(tmp_path / "run") == result
    for name in ("epochs.svg", "confusion.svg", "model/README.md", "model/model.safetensors"):
        assert (tmp_path / "run" / name).stat().st_size > 0, name
    record = read_run(tmp_path / "run")
    assert (record["kind"], record["ended"], record["mean"]) == ("finetune", "done", result.mean)
    assert record["best"] == result.best.scores
    assert set(record["data"]) == {"train"}


@pytest.mark.usefixtures("no_pictures")
def test_a_head_that_other_libraries_lack_is_announced(
    table: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pooling in ("cls", "mean"):
        finetune(table, model, tmp_path / pooling, set=[f"task.pooling={pooling}"], progress="plain")
        said = "other libraries read only the encoder of this model" in capsys.readouterr().err
        assert said is (pooling == "mean")


@pytest.mark.usefixtures("no_pictures")
def test_finished_seeds_are_not_trained_again(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = interrupt_seed_1(monkeypatch, lambda data, seed: seed)
    with pytest.raises(KeyboardInterrupt):
        finetune(table, model, tmp_path / "run", seeds=3)
    result = finetune(table, model, tmp_path / "run", seeds=3)
    assert seeds == [0, 1, 1, 2]
    assert [each.seed for each in result.seeds] == [0, 1, 2]
    records = [each for each in read_metrics(tmp_path / "run" / "metrics.jsonl") if each["kind"] == "train"]
    steps = [(each["seed"], each["step"]) for each in records]
    assert len(steps) == len({*steps})


@pytest.mark.usefixtures("no_pictures")
def test_all_seeds_have_the_precision_that_the_first_start_measured(
    table: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = interrupt_seed_1(monkeypatch, lambda data, seed: data.run.precision)
    monkeypatch.setattr(finetuning, "choose_precision", lambda device: "bfloat16")
    with pytest.raises(KeyboardInterrupt):
        finetune(table, model, tmp_path / "run", seeds=2)
    monkeypatch.setattr(finetuning, "choose_precision", lambda device: "float32")
    finetune(table, model, tmp_path / "run", seeds=2)
    assert trained == ["bfloat16"] * 3
    record = read_run(tmp_path / "run")
    assert (record["run"]["precision"], record["origins"]["precision"]) == ("bfloat16", "measured")
    with pytest.raises(BertkitError, match="different: precision"):
        finetune(table, model, tmp_path / "run", seeds=2, set=["precision=float32"])


@pytest.mark.usefixtures("no_pictures")
def test_a_start_that_failed_leaves_no_settings(table: Path, model: Path, tmp_path: Path) -> None:
    dev = tmp_path / "dev.csv"
    dev.write_text("review,label\na,\n")
    with pytest.raises(BertkitError, match="0 dev examples"):
        finetune(table, model, tmp_path / "run", dev=dev, set=["precision=float32"])
    dev.write_text(table.read_text())
    finetune(table, model, tmp_path / "run", dev=dev)
    record = read_run(tmp_path / "run")
    assert record["run"]["precision"] in ("float32", "bfloat16")
    assert record["origins"]["precision"] == "measured"


@pytest.mark.usefixtures("no_pictures")
def test_other_settings_in_the_same_folder_are_refused(table: Path, model: Path, tmp_path: Path) -> None:
    finetune(table, model, tmp_path / "run", lr=1e-3)
    with pytest.raises(BertkitError, match=r"holds another run \(different: optimizer\.lr\)") as caught:
        finetune(table, model, tmp_path / "run", lr=1e-4)
    assert caught.value.exit_code == WRONG_USAGE


@pytest.mark.usefixtures("no_pictures")
def test_changed_data_files_are_refused(model: Path, tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    rows = [f"{WORDS[row % 7]} {WORDS[row % 11]},{('bad', 'good')[row % 2]}\n" for row in range(60)]
    table.write_text("review,label\n" + "".join(rows))
    finetune(table, model, tmp_path / "run")
    table.write_text("review,label\n" + "".join(rows[::-1]))
    with pytest.raises(BertkitError, match=r"the data files of .*run have changed since it began"):
        finetune(table, model, tmp_path / "run")


def test_a_folder_of_unlabelled_texts_is_hashed_with_all_that_is_below(
    table: Path, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "texts" / "pos").mkdir(parents=True)
    (tmp_path / "texts" / "pos" / "1.txt").write_text("the mill")
    base = FinetuneRun(task=guess(table).task, model=model, output=tmp_path / "run", teacher=model)
    run = replace(base, unlabelled=tmp_path / "texts")
    before = finetuning._fingerprints_of_inputs(run)
    (tmp_path / "texts" / "pos" / "1.txt").write_text("the river")
    assert before["unlabelled"] != finetuning._fingerprints_of_inputs(run)["unlabelled"]


@pytest.mark.usefixtures("no_pictures")
def test_another_model_at_the_same_path_is_refused(table: Path, model: Path, tmp_path: Path) -> None:
    """A further seed would start from other weights than the first, and their mean would be of no model."""
    shutil.copytree(model, tmp_path / "model")
    finetune(table, tmp_path / "model", tmp_path / "run")
    (tmp_path / "model" / "README.md").write_text("A note does not change the model.")
    (tmp_path / "model" / ".partial").write_text("Nor does a hidden file.")
    assert len(finetune(table, tmp_path / "model", tmp_path / "run", seeds=1).seeds) == 1
    weights = bytearray((tmp_path / "model" / "model.safetensors").read_bytes())
    weights[-2] ^= 1
    (tmp_path / "model" / "model.safetensors").write_bytes(weights)
    with pytest.raises(
        BertkitError, match=r"model has changed since .*run began with it\. Choose another -o folder"
    ) as caught:
        finetune(table, tmp_path / "model", tmp_path / "run")
    assert caught.value.exit_code == WRONG_USAGE


@pytest.mark.usefixtures("no_pictures")
def test_a_run_that_failed_before_its_first_step_does_not_block_its_folder(
    table: Path, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(BertkitError, match="no model at"):
        finetune(table, tmp_path / "nowhere", tmp_path / "run")
    assert finetune(table, model, tmp_path / "run").best.epochs


@pytest.mark.usefixtures("no_pictures")
def test_the_origins_of_settings_are_recorded(table: Path, model: Path, tmp_path: Path) -> None:
    finetune(table, model, tmp_path / "run", set=["schedule.warmup=0.2"])
    origins = read_run(tmp_path / "run")["origins"]
    assert origins["schedule.warmup"] == "--set"
    assert origins["batch_size"] == "--batch-size"
