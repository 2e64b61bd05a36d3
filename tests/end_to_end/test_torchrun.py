"""``torchrun -m bertkit pretrain``: two processes share a run and stop together; any number can resume it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import bertkit
from bertkit.runs import read_metrics

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
KILLED_PROCESS = str(Path(__file__).with_name("killed_process.py"))
SECONDS_TO_WAIT = 300
STEPS = 60
SETTINGS = ["precision=float32", "save_every=3", "evaluate_every=30", "log_every=1"]
NO_DROPOUT = ["encoder.dropout=0", "encoder.attention_dropout=0"]


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of one undisturbed process, without dropout."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    settings = [*SETTINGS, *NO_DROPOUT]
    bertkit.pretrain(
        data, output=run, size="2/12/2", seq_length=37, batch_size=6, steps=STEPS, set=settings, progress="quiet"
    )
    return read_metrics(run / "metrics.jsonl")


def words(data: Path, run: Path, *settings: str) -> list[str]:
    sizes = ["--size", "2/12/2", "--seq-length", "37", "--batch-size", "6", "--steps", str(STEPS)]
    return ["pretrain", str(data), *sizes, "-o", str(run), "--progress", "plain", "--set", *SETTINGS, *settings]


def launch(*command: str, victim: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "VICTIM": victim}
    return subprocess.Popen([*TORCHRUN, *command], env=environment, stderr=subprocess.PIPE, text=True)


def wait(process: subprocess.Popen[str]) -> list[str]:
    """The remaining lines of stderr; a process that hangs is killed, which its exit code shows."""
    watchdog = threading.Timer(SECONDS_TO_WAIT, process.kill)
    watchdog.start()
    assert process.stderr is not None
    lines = process.stderr.readlines()
    process.wait()
    watchdog.cancel()
    return lines


def workers(process: subprocess.Popen[str]) -> list[int]:
    return sorted(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def assert_same(records: list[dict[str, Any]], undisturbed: list[dict[str, Any]]) -> None:
    assert [(each["kind"], each["step"]) for each in records] == [(each["kind"], each["step"]) for each in undisturbed]
    for one, other in zip(records, undisturbed, strict=True):
        for name in {"tokens", "loss/mlm", "loss/nsp", "mlm", "nsp", "mlm_accuracy"} & set(one):
            assert one[name] == pytest.approx(other[name], abs=1e-6 if one["step"] <= 20 else 1e-5), name


def test_a_signal_to_one_process_saves_and_stops_both_and_one_process_can_resume(
    data: Path, undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with launch("-m", "bertkit", *words(data, run, *NO_DROPOUT)) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("pretraining: "):
                os.kill(workers(process)[-1], signal.SIGTERM)
                break
        lines += wait(process)
    assert process.returncode == 1
    assert sum(line.startswith("stopped after step ") for line in lines) == 1, "".join(lines)
    assert sum(line.startswith("examples per epoch ") for line in lines) == 1
    assert not any(line.startswith("error: ") for line in lines), lines
    (checkpoint,) = (run / "checkpoints").iterdir()
    assert int(checkpoint.name.removeprefix("step-")) < STEPS
    bertkit.pretrain(resume=run, progress="quiet")
    assert_same(read_metrics(run / "metrics.jsonl"), undisturbed)


def test_if_one_process_is_killed_the_other_ends_with_one_line_and_the_run_can_be_resumed(
    data: Path, undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Sharded: one process reads the parts that two processes have written."""
    run = tmp_path / "run"
    with launch(KILLED_PROCESS, *words(data, run, *NO_DROPOUT, "shard=true"), victim="1:all-reduce:50") as process:
        lines = wait(process)
    assert process.returncode == 1
    assert sum(line.startswith("error: another process of this training has ended") for line in lines) == 1, lines
    assert len(list((run / "checkpoints").glob("step-*/shard-*.safetensors"))) == 4
    bertkit.pretrain(resume=run, progress="quiet")
    assert_same(read_metrics(run / "metrics.jsonl"), undisturbed)


@pytest.mark.faults
def test_if_torchrun_itself_is_killed_its_processes_finish_the_run_or_it_can_be_resumed(
    data: Path, undisturbed: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The launcher holds the store in which processes find each other, and nobody is left to restart them."""
    run = tmp_path / "run"
    with launch("-m", "bertkit", *words(data, run, *NO_DROPOUT)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("pretraining: "):
                break
        process.kill()
        lines = wait(process)  # until the last process has closed stderr
    assert not any("Traceback" in line for line in lines), "".join(lines)
    if json.loads((run / "run.json").read_text(encoding="utf-8"))["ended"] != "done":
        bertkit.pretrain(resume=run, progress="quiet")
    assert_same(read_metrics(run / "metrics.jsonl"), undisturbed)


@pytest.mark.faults
def test_if_the_disk_of_one_process_is_full_all_end_with_one_line(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with launch(KILLED_PROCESS, *words(data, run, "shard=true"), victim="1:full disk:2") as process:
        lines = wait(process)
    assert process.returncode == 1
    errors = [line for line in lines if line.startswith("error: ")]
    assert errors
    assert all("cannot write" in line and "No space left on device" in line for line in errors), "".join(lines)
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000003"]


@pytest.mark.faults
@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("victim", ["1:forward:8", "1:all-reduce:50", "0:all-reduce:51", "0:save:2"])
def test_a_relaunch_after_a_kill_gives_the_same_result(data: Path, tmp_path: Path, victim: str, shard: bool) -> None:
    """Bit for bit, with dropout. Tensors are compared, because safetensors writes the headers of files in any order."""
    ends = []
    for name in ("whole", "broken"):
        run = tmp_path / name
        with launch(
            KILLED_PROCESS,
            *words(data, run, f"shard={shard}".lower()),
            victim=victim if name == "broken" else "9:save:1",
        ) as process:
            lines = wait(process)
        if name == "broken":
            assert process.returncode == 1, "".join(lines)
            with launch("-m", "bertkit", "pretrain", "--resume", str(run)) as process:
                lines = wait(process)
        assert process.returncode == 0, "".join(lines)
        newest = max((run / "checkpoints").iterdir())
        files = [path for path in sorted(newest.glob("*.safetensors")) if path.name != "random.safetensors"]
        ends.append([{name: tensor.numpy().tobytes() for name, tensor in load_file(path).items()} for path in files])
        steps = [record["step"] for record in read_metrics(run / "metrics.jsonl") if record["kind"] == "train"]
        assert steps == list(range(1, STEPS + 1))
    assert ends[0] == ends[1]
