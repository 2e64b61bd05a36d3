"""Crashes, full disks and the order in which things reach the disk, while a checkpoint or a model is saved.

Whatever happens, the old state or the new one loads afterwards, bit for bit, and the next save works.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import resource
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

import bertkit
from bertkit.checkpoint import tensors as _tensors
from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert, size
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.runs import RunFolder
from bertkit.storage.atomic import remove_temporaries
from bertkit.task_types import TextClassificationTask
from bertkit.text.wordpiece import WordPiece

SOURCE = str(Path(bertkit.__file__).parent)
CRASHED = 137
SUBWORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f", "g", "h"]
TASK = TextClassificationTask(name="files:t.csv", metric="accuracy", labels=("dry", "wet", "odd"))

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.usefixtures("without_shape_checks"),
]


@dataclass(frozen=True, kw_only=True)
class PretrainingJob:
    """A save that is interrupted: how the old and the new are written, and what is found afterwards."""

    before: Callable[[Path], object]
    save: Callable[[Path], object]
    found: Callable[[Path], object]
    allowed: tuple[object, ...]
    names: frozenset[str]


def checkpoint(value: float) -> dict[str, dict[str, Tensor]]:
    return {"model": {"weight": torch.full((7, 3), value)}, "optimizer": {"weight/step": torch.tensor(value)}}


def newest(folder: Path) -> tuple[int, float]:
    path, faults = store.latest(folder)
    assert path is not None
    assert faults == []
    groups, state = store.load(path)
    assert torch.equal(groups["model"]["weight"], torch.full((7, 3), state["value"]))
    assert groups["optimizer"]["weight/step"] == state["value"]
    return state["step"], state["value"]


def save_checkpoint(step: int, value: float) -> Callable[[Path], object]:
    return lambda folder: store.save(folder, step, checkpoint(value), {"step": step, "value": value})


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordPiece:
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(SUBWORDS), encoding="utf-8")
    return WordPiece.load(path)


def build(value: float) -> Model:
    encoder = Bert(size("1/4/2", vocab_size=13, max_positions=7))
    model = Model(encoder, TASK.objectives(encoder))
    for weight in model.parameters():
        torch.nn.init.constant_(weight, value)
    return model


def save_folder(value: float, tokenizer: WordPiece) -> Callable[[Path], object]:
    model, about = build(value), {"task": TASK.record(), "value": value}
    return lambda folder: save_model(folder / "model", model, tokenizer, metadata=about)


def model_value(folder: Path) -> float:
    value = float(ModelFolder.open(folder).metadata["value"])
    assert ModelFolder.open(folder).tokenizer.vocab_size == 13
    assert all((weight == value).all() for weight in ModelFolder.open(folder).load_model(TASK.objectives).parameters())
    return value


@pytest.fixture(params=["next step", "same step", "model"])
def job(request: pytest.FixtureRequest, tokenizer: WordPiece) -> PretrainingJob:
    if request.param == "model":
        return PretrainingJob(
            before=save_folder(1.0, tokenizer),
            save=save_folder(2.0, tokenizer),
            found=model_value,
            allowed=(1.0, 2.0),
            names=frozenset({"model"}),
        )
    step = 2 if request.param == "next step" else 1
    return PretrainingJob(
        before=save_checkpoint(1, 1.0),
        save=save_checkpoint(step, 2.0),
        found=newest,
        allowed=((1, 1.0), (step, 2.0)),
        names=frozenset({"step-00000001", f"step-{step:08}"}),
    )


@pytest.fixture
def folder(tmp_path: Path, job: PretrainingJob, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Path]]:
    """A function that returns a new copy of the folder as it was before the save.

    Killing a process loses nothing that was written, so flushing, which takes most of the time, is left out.
    """
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    job.before(original)

    def fresh() -> Path:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        return copy

    yield fresh
    shutil.rmtree(tmp_path)


def run_in_child(body: Callable[[], object]) -> int:
    """The exit code of a forked child that runs ``body``: 0 done, 1 an error, or whatever it ended itself with."""
    child = os.fork()
    if child == 0:
        try:
            body()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def look(folder: Path, job: PretrainingJob) -> object:
    """What a reader finds after a fault: nothing half done, and a next save that works."""
    found = job.found(folder)
    assert found in job.allowed, f"{found} is neither the old nor the new"
    listed = {path.name.removeprefix(".bertkit-old-") for path in store.checkpoints(folder)}
    assert listed <= job.names
    job.save(folder)
    remove_temporaries(folder)
    assert job.found(folder) == job.allowed[1]
    assert {path.name for path in folder.iterdir()} <= job.names
    return found


# --- a crash at any instruction -------------------------------------------------------------------------------------


def save_and_crash(job: PretrainingJob, folder: Path, opcodes: int) -> None:
    """End this process at the so-manieth bytecode instruction of bertkit's own code."""
    left = opcodes

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "opcode":
            left -= 1
            if left == 0:
                os._exit(CRASHED)
        return local

    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        frame.f_trace_opcodes = True
        return local

    trace_opcodes(enter)
    job.save(folder)


def trace_opcodes(function: Callable[..., Any]) -> None:
    """``sys.settrace``; Python 3.12 has events of instructions only if a frame asks for them before."""
    sys._getframe().f_trace_opcodes = True
    sys.settrace(function)


def count_opcodes(job: PretrainingJob, folder: Path) -> int:
    """How many instructions of bertkit's own a whole save takes."""
    counted = 0

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event == "opcode"
        return local

    def enter(frame: types.FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = frame.f_code.co_filename.startswith(SOURCE)
        return local if frame.f_trace_opcodes else None

    before = sys.gettrace()
    trace_opcodes(enter)
    job.save(folder)
    sys.settrace(before)
    return counted


def sample(total: int, points: int) -> list[int]:
    """So many instructions, half of them near the end, where the renames are; all if there are not more."""
    if total <= points:
        return list(range(1, total + 1))
    last = min(total, max(150, points // 2))
    return [*range(1, total - last, 2 * total // points), *range(total - last + 1, total + 1, 2 * last // points)]


def crash_everywhere(job: PretrainingJob, folder: Callable[[], Path], points: int) -> None:
    total = count_opcodes(job, folder())
    seen = set()
    for opcodes in sample(total, points):
        place = folder()
        assert run_in_child(partial(save_and_crash, job, place, opcodes)) == CRASHED
        seen.add(look(place, job))
    assert seen == set(job.allowed), "the crashes did not fall on both sides of the rename"


@pytest.mark.parametrize("points", [30, pytest.param(2000, marks=pytest.mark.faults)])
def test_a_crash_at_any_instruction_loses_nothing(job: PretrainingJob, folder: Callable[[], Path], points: int) -> None:
    crash_everywhere(job, folder, points)


# --- the n-th call to the operating system --------------------------------------------------------------------------

CALLS = ("open", "fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "scandir", "stat")


class Calls:
    """Counts calls to the operating system that bertkit makes, and does something at the n-th.

    ``save_file`` writes outside of Python, so it counts as one call that leaves a torso when it fails.
    """

    def __init__(self, patch: pytest.MonkeyPatch, number: int, strike: Callable[[], None], *, after: bool) -> None:
        self.left = number
        self.strike = strike
        self.after = after
        for name in CALLS:
            patch.setattr(os, name, self.counted(getattr(os, name)))
        patch.setattr(io, "open", self.counted(io.open))
        patch.setattr(builtins, "open", self.counted(builtins.open))
        patch.setattr(_tensors, "save_file", self.counted(self.torso(save_file)))

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                self.strike()
            strikes = self.left == 0 and self.after
            try:
                return call(*arguments, **named)
            finally:
                if strikes:
                    self.strike()

        return wrapped

    def torso(self, save: Callable[..., None]) -> Callable[..., None]:
        def wrapped(tensors: Any, path: Path, metadata: Any) -> None:
            if self.left == 0:
                path.write_bytes(b"torso")
            save(tensors, path, metadata=metadata)

        return wrapped


MANY_OR_ALL = pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.faults)])


@MANY_OR_ALL
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_loses_nothing(
    job: PretrainingJob, folder: Callable[[], Path], after: bool, stride: int
) -> None:
    def run(place: Path, number: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            Calls(patch, number, lambda: os._exit(CRASHED), after=after)
            job.save(place)

    for number in range(1 + after, 1000, stride):
        place = folder()
        ended = run_in_child(partial(run, place, number))
        look(place, job)
        if ended != CRASHED:
            break
    assert ended == 0
    assert number > 20, "calls were not seen"


def failures() -> list[BaseException]:
    full = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    return [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), OSError(errno.EIO, os.strerror(errno.EIO)), full]


@MANY_OR_ALL
@pytest.mark.parametrize("error", [*failures(), MemoryError()], ids=["ENOSPC", "EIO", "safetensors", "memory"])
def test_any_failing_call_is_reported_in_one_line_and_loses_nothing(
    job: PretrainingJob, folder: Callable[[], Path], error: BaseException, stride: int
) -> None:
    def strike() -> None:
        raise error

    for number in range(1, 1000, stride):
        place = folder()
        failed = False
        with pytest.MonkeyPatch.context() as patch:
            calls = Calls(patch, number, strike, after=False)
            try:
                job.save(place)
            except BertkitError as caught:
                failed = True
                assert str(place) in str(caught)
                assert "\n" not in str(caught)
            except MemoryError:
                failed = True
                assert isinstance(error, MemoryError)
        if failed:
            assert not list(place.glob(".bertkit-tmp-*"))
        look(place, job)
        if calls.left > 0:
            break
    assert number > 20, "calls were not seen"


@pytest.mark.parametrize("limit", [0, 1, 7, 64, 100, 200, 256, 300, 333, 400, 450, 512, 600, 700, 800, 900, 999])
def test_a_full_disk_keeps_the_old_files(job: PretrainingJob, folder: Callable[[], Path], limit: int) -> None:
    """A real limit of the operating system on the size of a file, below the size of what is saved."""
    place = folder()

    def save() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            job.save(place)
        except BertkitError as error:
            os._exit(3 if "too large" in str(error) and str(place) in str(error) else 4)

    ended = run_in_child(save)
    assert ended in (3, 0)
    if ended == 3:
        assert job.found(place) == job.allowed[0]
        assert not list(place.glob(".bertkit-tmp-*"))
    assert limit > 256 or ended == 3
    look(place, job)


# --- the order in which things reach the disk -----------------------------------------------------------------------


def content(path: Path) -> object:
    return sorted(each.name for each in path.iterdir()) if path.is_dir() else path.read_bytes()


def test_files_are_flushed_to_disk_before_they_are_renamed(
    job: PretrainingJob, folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder()
    flushed: dict[str, object] = {}
    order: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watch_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        flushed[str(path)] = content(path)
        order.append(f"fsync {path.name}")

    def watch_rename(source: Path, target: Path) -> None:
        if Path(source).name.startswith(".bertkit-tmp-") and Path(source).is_dir():
            assert target.name in job.names
            for path in [Path(source), *Path(source).iterdir()]:
                assert flushed.get(str(path)) == content(path), f"{path.name} is not on the disk as it is"
            order.append("named")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watch_fsync)
    monkeypatch.setattr(os, "rename", watch_rename)
    job.save(place)
    assert order.count("named") == 1
    assert f"fsync {place.name}" in order[order.index("named") :], "the name itself is not on the disk"
    if "fsync manifest.json" in order:
        others = {"fsync model.safetensors", "fsync optimizer.safetensors"}
        assert others <= set(order[: order.index("fsync manifest.json")]), "the manifest vouches for what may be lost"


def test_the_manifest_is_written_last(tmp_path: Path) -> None:
    path = store.save(tmp_path, 1, checkpoint(1.0), {})
    times = {file.name: file.stat().st_mtime_ns for file in path.iterdir()}
    assert max(times, key=lambda name: times[name]) == "manifest.json"


def test_the_old_model_is_found_if_its_replacement_was_interrupted(tmp_path: Path, tokenizer: WordPiece) -> None:
    """Cut off between the two renames, the old model stands aside and is what RUN means."""
    save_folder(1.0, tokenizer)(tmp_path)
    (tmp_path / "model").rename(tmp_path / ".bertkit-old-model")
    assert ModelFolder.open(tmp_path).path == tmp_path / ".bertkit-old-model"
    assert ModelFolder.open(tmp_path / "model").path == tmp_path / ".bertkit-old-model"
    assert model_value(tmp_path) == 1.0


def test_the_next_start_removes_temporary_files_of_a_crash(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_folder(1.0, tokenizer)(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "model").rename(tmp_path / ".bertkit-old-model")
    (tmp_path / ".bertkit-tmp-13-model").mkdir()
    (tmp_path / "checkpoints" / ".bertkit-tmp-13-step-00000007").mkdir(parents=True)
    with RunFolder(tmp_path) as folder:
        assert model_value(folder.model) == 1.0
        assert list(folder.checkpoints.iterdir()) == []
        assert not (tmp_path / ".bertkit-tmp-13-model").exists()
