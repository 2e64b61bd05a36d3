"""``torchrun -m bertkit pretrain``: two processes make one run, stop together, and leave what any number can resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from bertkit import api
from bertkit.runs import read_metrics

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
VICTIM = str(Path(__file__).with_name("victim.py"))
PATIENCE = 300
STEPS = 60
SETTINGS = ["precision=float32", "save_every=3", "evaluate_every=30", "log_every=1"]
NO_DROPOUT = ["encoder.dropout=0", "encoder.attention_dropout=0"]


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of one process that nobody disturbs, without dropout."""
    run = tmp_path_factory.mktemp("alone") / "run"
    options = {"size": "2/12/2", "seq_length": 37, "batch_size": 6, "steps": STEPS}
    api.pretrain(data, output=run, set=[*SETTINGS, *NO_DROPOUT], progress="quiet", **options)  # type: ignore[arg-type]
    return read_metrics(run / "metrics.jsonl")


def words(data: Path, run: Path, *settings: str) -> list[str]:
    sizes = ["--size", "2/12/2", "--seq-length", "37", "--batch-size", "6", "--steps", str(STEPS)]
    return ["pretrain", str(data), *sizes, "-o", str(run), "--progress", "plain", "--set", *SETTINGS, *settings]


def launch(*command: str, victim: str = "") -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "VICTIM": victim}
    return subprocess.Popen([*TORCHRUN, *command], env=environment, stderr=subprocess.PIPE, text=True)


def wait(process: subprocess.Popen[str]) -> list[str]:
    """What it still says; a process that hangs is killed, which its exit code shows."""
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    assert process.stderr is not None
    said = process.stderr.readlines()
    process.wait()
    watchdog.cancel()
    return said


def workers(process: subprocess.Popen[str]) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    return sorted(map(int, found.stdout.split()))


def assert_same(records: list[dict[str, Any]], alone: list[dict[str, Any]]) -> None:
    assert [(each["kind"], each["step"]) for each in records] == [(each["kind"], each["step"]) for each in alone]
    for one, other in zip(records, alone, strict=True):
        for name in {"tokens", "loss/mlm", "loss/nsp", "mlm", "nsp", "mlm_accuracy"} & set(one):
            assert one[name] == pytest.approx(other[name], abs=1e-6 if one["step"] <= 20 else 1e-5), name


def test_a_signal_to_one_process_stops_both_after_a_save_and_one_process_goes_on(
    data: Path, alone: list[dict[str, Any]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with launch("-m", "bertkit", *words(data, run, *NO_DROPOUT)) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("pretraining: "):
                os.kill(workers(process)[-1], signal.SIGTERM)
                break
        said += wait(process)
    assert process.returncode == 1
    assert sum(line.startswith("stopped after step ") for line in said) == 1, "".join(said)
    assert sum(line.startswith("examples an epoch ") for line in said) == 1
    assert not any(line.startswith("error: ") for line in said), said
    (checkpoint,) = (run / "checkpoints").iterdir()
    assert int(checkpoint.name.removeprefix("step-")) < STEPS
    api.pretrain(resume=run, progress="quiet")
    assert_same(read_metrics(run / "metrics.jsonl"), alone)


def test_when_one_process_is_killed_the_other_ends_in_one_line_and_the_run_goes_on(
    data: Path, alone: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Sharded: what two processes have written, each its part, one process reads."""
    run = tmp_path / "run"
    with launch(VICTIM, *words(data, run, *NO_DROPOUT, "shard=true"), victim="1:all-reduce:50") as process:
        said = wait(process)
    assert process.returncode == 1
    assert sum(line.startswith("error: another process of this training has ended") for line in said) == 1, said
    assert len(list((run / "checkpoints").glob("step-*/shard-*.safetensors"))) == 4
    api.pretrain(resume=run, progress="quiet")
    assert_same(read_metrics(run / "metrics.jsonl"), alone)


def test_when_one_process_finds_its_disk_full_all_end_in_one_line(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with launch(VICTIM, *words(data, run, "shard=true"), victim="1:full disk:2") as process:
        said = wait(process)
    assert process.returncode == 1
    errors = [line for line in said if line.startswith("error: ")]
    assert errors
    assert all("cannot write" in line and "No space left on device" in line for line in errors), "".join(said)
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000003"]


@pytest.mark.faults
@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("victim", ["1:forward:8", "1:all-reduce:50", "0:all-reduce:51", "0:save:2"])
def test_a_relaunch_after_a_kill_ends_as_if_nothing_had_happened(
    data: Path, tmp_path: Path, victim: str, shard: bool
) -> None:
    """Bit for bit, with dropout on. Tensors are compared and not files, whose heads safetensors writes in any order."""
    ends = []
    for name in ("whole", "broken"):
        run = tmp_path / name
        with launch(
            VICTIM, *words(data, run, f"shard={shard}".lower()), victim=victim if name == "broken" else "9:save:1"
        ) as process:
            said = wait(process)
        if name == "broken":
            assert process.returncode == 1, "".join(said)
            with launch("-m", "bertkit", "pretrain", "--resume", str(run)) as process:
                said = wait(process)
        assert process.returncode == 0, "".join(said)
        newest = max((run / "checkpoints").iterdir())
        files = [path for path in sorted(newest.glob("*.safetensors")) if path.name != "random.safetensors"]
        ends.append([{name: tensor.numpy().tobytes() for name, tensor in load_file(path).items()} for path in files])
        steps = [record["step"] for record in read_metrics(run / "metrics.jsonl") if record["kind"] == "train"]
        assert steps == list(range(1, STEPS + 1))
    assert ends[0] == ends[1]
