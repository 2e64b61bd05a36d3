from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest
import torch
from tests.interruptible_run import outcome

from bertkit.checkpoint import training_state
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.config.settings import Setting
from bertkit.encoders.bert import BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.objective_settings import Masking
from bertkit.pretraining import job
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain, read_begun, resume
from bertkit.pretraining.task import PretrainingTask
from bertkit.report.progress import Progress
from bertkit.runs import FORMAT, read_metrics, read_run
from bertkit.storage.atomic import write_json
from bertkit.training import fit
from bertkit.training.averaging import AveragingConfig
from bertkit.training.fit import accumulate_gradients
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.schedule import ScheduleConfig

pytestmark = pytest.mark.usefixtures("without_shape_checks")


def resume_at(step: int, finished: Path, broken: Path) -> Path:
    """Resume a copy of a finished run of 10 steps that lost everything after ``step``."""
    shutil.copytree(finished, broken, ignore=shutil.ignore_patterns("model"))
    for later in range(step + 1, 11):
        shutil.rmtree(broken / "checkpoints" / f"step-{later:08}")
    resume(broken, Progress("quiet"))
    return broken


@pytest.mark.parametrize(("long_phase", "kind"), [("continue", "lamb"), ("restart", "lamb"), ("restart", "muon")])
def test_a_resume_in_either_phase_or_between_them_is_bit_exact(
    run: PretrainRun, tmp_path: Path, long_phase: Literal["continue", "restart"], kind: Literal["lamb", "muon"]
) -> None:
    optimizer = OptimizerConfig(kind=kind, lr=1e-2, bias_correction=True)
    run = replace(run, long_phase=long_phase, long_lr=1e-3, long_batch_size=3, optimizer=optimizer)
    pretrain(replace(run, save_every=1, keep_checkpoints=10), Progress("quiet"))
    for step in (5, 7, 8):
        assert outcome(resume_at(step, run.output, tmp_path / f"broken-{step}")) == outcome(run.output)


def test_the_seconds_are_those_of_all_parts(run: PretrainRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds_per_look, folder in ((1000.0, run.output), (1.0, tmp_path / "broken")):
        clock = itertools.count(step=seconds_per_look)
        monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda clock=clock: next(clock)))
        if folder == run.output:
            pretrain(replace(run, save_every=1, keep_checkpoints=10), Progress("quiet"))
        else:
            resume_at(5, run.output, folder)
    assert read_run(run.output)["seconds"] == pytest.approx(11_000)
    assert read_run(tmp_path / "broken")["seconds"] == pytest.approx(5_000 + 6)


def test_left_to_right_pretraining_without_next_sentences(run: PretrainRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(run.encoder, BertConfig)
    task = PretrainingTask(objectives=("clm",))
    run = replace(run, encoder=replace(run.encoder, causal=True), task=task)
    result = pretrain(run, Progress("plain"))
    assert {"clm", "clm_accuracy", "clm_perplexity"} == set(result.heldout)
    assert "masked              none" in capsys.readouterr().err
    records = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert all(each["loss/clm"] > 0 and each["flops_per_second"] > 0 for each in records)
    assert ModelFolder.open(run.output).load_encoder().config == run.encoder


def test_a_finished_run_is_recorded(run: PretrainRun) -> None:
    result = pretrain(replace(run, precision=None), Progress("quiet"), origins={"seed": "--seed"})
    record = read_run(run.output)
    assert (record["kind"], record["ended"], record["heldout"]) == ("pretrain", "done", result.heldout)
    assert record["origins"] == {"seed": "--seed", "precision": "measured"}
    assert {"data", "data_report", "corpus", "environment", "command"} <= set(record)
    assert (result.folder, result.steps) == (run.output, 10)
    assert (run.output / "training.svg").stat().st_size > 0


def test_there_are_no_more_snapshots_than_steps(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    needed: list[int] = []
    monkeypatch.setattr("bertkit.pretraining.run.require_space", lambda folder, size: needed.append(size))
    for number, snapshots in enumerate((3, 10**6)):
        pretrain(replace(run, output=run.output / str(number), steps=3, snapshots=snapshots), Progress("quiet"))
    assert needed[0] == needed[1]


def test_a_run_is_resumed_where_it_is(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    with pytest.raises(BertkitError, match="is continued where it is: leave out --set output"):
        resume(run.output, Progress("quiet"), [Setting("output", "elsewhere", "--set")])


def test_a_resume_needs_no_room_for_what_is_saved(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    needed: list[int] = []
    monkeypatch.setattr("bertkit.pretraining.run.require_space", lambda folder, size: needed.append(size))
    pretrain(replace(run, snapshots=3, keep_checkpoints=1), Progress("quiet"))
    resume(run.output, Progress("quiet"))
    at_first, later = needed
    assert at_first > 2 * later  # two checkpoints and three models, then one of each


@pytest.mark.parametrize("kind", ["ema", "tail"])
def test_the_averaged_model_is_evaluated_and_saved(
    run: PretrainRun, tmp_path: Path, kind: Literal["ema", "tail"]
) -> None:
    run = replace(
        run, averaging=AveragingConfig(kind=kind, share=0.5), save_every=8, optimizer=OptimizerConfig(lr=1e-2)
    )
    pretrain(run, Progress("quiet"))
    groups, _ = training_state.load(run.output / "checkpoints" / "step-00000010")
    saved = ModelFolder.open(run.output).load_encoder().get_parameter("embeddings.word.weight")
    name = "encoder.embeddings.word.weight"
    assert torch.equal(saved, groups["average"][name])
    assert not torch.equal(saved, groups["model"][name])
    broken = tmp_path / "broken"
    shutil.copytree(run.output, broken, ignore=shutil.ignore_patterns("model"))
    shutil.rmtree(broken / "checkpoints" / "step-00000010")
    resume(broken, Progress("quiet"))
    assert outcome(broken) == outcome(run.output)


@pytest.fixture
def seconds_per_step(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still, except that each step takes the next number of seconds, again and again."""
    now, cycle = [0.0], [1.0]

    def accumulate(*arguments: object) -> tuple[float, dict[str, float]]:
        now[0] += cycle[0]
        cycle.append(cycle.pop(0))
        return accumulate_gradients(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fit, "accumulate_gradients", accumulate)
    monkeypatch.setattr(fit, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return cycle


def timed(run: PretrainRun) -> PretrainRun:
    """The run for 20 seconds with everything that depends on the time."""
    masking = Masking(rate=0.6, final_rate=0.2)
    schedule = ScheduleConfig(warmup=0.1, decay="linear")
    return replace(run, steps=None, minutes=1 / 3, schedule=schedule, task=PretrainingTask(masking=masking))


def test_a_timed_run_follows_the_clock(run: PretrainRun, seconds_per_step: list[float]) -> None:
    seconds_per_step[:] = [1.0, 3.0]
    run = timed(run)
    result = pretrain(run, Progress("quiet"))
    records = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    elapsed = [0, 1, 4, 5, 8, 9, 12, 13, 16, 17]  # at the beginning of each step
    assert [each["elapsed"] for each in records] == [*elapsed[1:], 20]
    factors = [seconds / 2 if seconds < 2 else (20 - seconds) / 18 for seconds in elapsed]
    assert [each["lr"] for each in records] == pytest.approx([1e-4 * factor for factor in factors])
    lengths = [each["tokens"] for each in records]
    assert max(lengths[:8]) <= 7 * 13 < min(lengths[8:])  # from second 14 on
    assert (result.steps, read_run(run.output)["steps"]) == (10, 10)
    assert f"pre-trained for {result.steps} steps" in (run.output / "model" / "README.md").read_text()


def test_a_timed_run_resumes_bit_for_bit_if_its_steps_take_the_same_time(
    run: PretrainRun, tmp_path: Path, seconds_per_step: list[float]
) -> None:
    seconds_per_step[:] = [2.0]
    run = timed(run)
    pretrain(replace(run, save_every=1, keep_checkpoints=20), Progress("quiet"))
    for step in (3, 7, 10):
        assert outcome(resume_at(step, run.output, tmp_path / f"broken-{step}")) == outcome(run.output)


def test_a_busy_machine_makes_fewer_steps_and_completes_the_schedule(
    run: PretrainRun, tmp_path: Path, seconds_per_step: list[float]
) -> None:
    """After an interruption steps take three times as long: the run still ends at its time."""
    seconds_per_step[:] = [1.0]
    run = timed(run)
    pretrain(replace(run, save_every=1, keep_checkpoints=20), Progress("quiet"))
    broken = tmp_path / "broken"
    shutil.copytree(run.output, broken, ignore=shutil.ignore_patterns("model"))
    for later in range(9, 21):
        shutil.rmtree(broken / "checkpoints" / f"step-{later:08}")
    seconds_per_step[:] = [3.0]
    assert resume(broken, Progress("quiet")).steps == 8 + 4
    assert read_metrics(broken / "metrics.jsonl")[-2]["lr"] == pytest.approx(1e-4 * (20 - 17) / 18)


@pytest.mark.parametrize("given", [{"steps": None}, {"minutes": 1.0}])
def test_either_steps_or_minutes_must_be_given(run: PretrainRun, given: dict[str, float | None]) -> None:
    with pytest.raises(BertkitError, match="give either --steps or --minutes"):
        pretrain(replace(run, **given), Progress("quiet"))  # type: ignore[arg-type]


def test_a_folder_that_holds_a_run_is_refused(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    with pytest.raises(BertkitError, match=r"run holds a run already. Give --resume .*run, or another -o folder"):
        pretrain(run, Progress("quiet"))


def test_a_resume_without_its_data_names_the_setting(run: PretrainRun) -> None:
    """As in another working folder, where the recorded path is not that of the corpus."""
    pretrain(run, Progress("quiet"))
    run.data.rename(run.data.with_name("elsewhere"))
    with pytest.raises(BertkitError, match=r"no data at .*data, with .*pretrain --resume .*run --set data=FOLDER$"):
        resume(run.output, Progress("quiet"))


def test_settings_of_a_resume_have_its_origin(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"), origins={"seed": "--seed"})
    resume(run.output, Progress("quiet"), settings=[Setting("log_every", 13, "--set")])
    record = read_run(run.output)
    assert record["run"]["log_every"] == 13
    assert record["origins"]["log_every"] == "--set"
    assert record["origins"]["seed"] == "--seed"


def test_a_run_without_a_checkpoint_is_resumed_from_step_0(
    run: PretrainRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrain(run, Progress("quiet"))
    broken = tmp_path / "broken"
    shutil.copytree(run.output, broken, ignore=shutil.ignore_patterns("model", "checkpoints"))
    resume(broken, Progress("plain"))
    assert "broken has no checkpoint yet; starting again from step 0" in capsys.readouterr().err
    assert outcome(broken) == outcome(run.output)


def test_only_pretraining_runs_are_resumed(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {"format": FORMAT, "kind": "finetune", "run": {}})
    with pytest.raises(BertkitError, match=r"is a run of finetune\. Repeat its command") as caught:
        read_begun(tmp_path)
    assert caught.value.exit_code == WRONG_USAGE


def test_a_mixture_is_resumed_bit_for_bit_and_reported(
    mixed: PretrainRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = pretrain(replace(mixed, save_every=1, keep_checkpoints=10), Progress("plain"))
    books = next(iter(mixed.mix))
    assert f" {books}, read " in capsys.readouterr().err
    shares = [each.share for each in result.data.mixture]
    assert shares == pytest.approx([0.75, 0.25], abs=0.01)
    record = read_run(mixed.output)
    assert record["run"]["mix"] == {books: 0.25}
    assert [each["folder"] for each in record["data_report"]["mixture"]] == [str(mixed.data), books]
    assert [each["file"] for each in record["data"]] == ["data/texts.jsonl", "books/books.jsonl"]
    for step in (5, 8):
        assert outcome(resume_at(step, mixed.output, tmp_path / f"broken-{step}")) == outcome(mixed.output)


def test_another_share_gives_another_model(mixed: PretrainRun) -> None:
    pretrain(mixed, Progress("quiet"))
    other = replace(mixed, mix=dict.fromkeys(mixed.mix, 0.5), output=mixed.output.with_name("other"))
    pretrain(other, Progress("quiet"))
    assert outcome(other.output) != outcome(mixed.output)


def test_a_mixture_that_cannot_be_opened_leaves_no_run_folder(mixed: PretrainRun, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"no data at .*nowhere"):
        pretrain(replace(mixed, mix={str(tmp_path / "nowhere"): 0.25}), Progress("quiet"))
    with pytest.raises(BertkitError, match="data is named twice"):
        pretrain(replace(mixed, mix={str(mixed.data): 0.25}), Progress("quiet"))
    assert not mixed.output.exists()
