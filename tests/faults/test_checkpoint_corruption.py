"""Every file of a checkpoint and of a model, damaged in every way: an error that names it, never silent use."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.checkpoint.tensors import read_tensors
from bertkit.encoders.bert import Bert, size
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.storage.checksums import write_checksums
from bertkit.task_types import FileTask, TextClassificationTask, from_record
from bertkit.text.wordpiece import WordPiece

FLIPS = 200
SOME_OR_ALL = pytest.mark.parametrize("count", [19, pytest.param(FLIPS, marks=pytest.mark.faults)])
SUBWORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f", "g", "h"]
TASK = TextClassificationTask(name="files:t.csv", metric="accuracy", labels=("dry", "wet", "odd"))
CHECKPOINT_FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json")
MODEL_FILES = (
    "bertkit.json",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
)

Damage = Callable[[Path], object]


def truncate(at: float) -> Damage:
    return lambda path: os.truncate(path, int(at if at >= 1 else at * path.stat().st_size))


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def blank(path: Path) -> None:
    """Zeros where a block of a disk was lost."""
    content = path.read_bytes()
    lost = content[13 : 13 + 4096]
    path.write_bytes(content[:13] + bytes(len(lost)) + content[13 + len(lost) :])


def swap(path: Path) -> None:
    """The content of another file of the same folder."""
    other = next(each for each in sorted(path.parent.iterdir(), reverse=True) if each != path)
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangle(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGES: dict[str, Damage] = {
    "empty": truncate(0),
    "one byte": truncate(1),
    "half": truncate(0.5),
    "one byte less": shorten,
    "one byte more": append,
    "zeroed": blank,
    "swapped": swap,
    "deleted": Path.unlink,
    "folder": become_folder,
    "dangling": dangle,
}


def flips(path: Path, count: int) -> Iterator[None]:
    """Flip one bit of the file at a time, at ``count`` positions."""
    content = path.read_bytes()
    for bit in np.linspace(0, 8 * len(content) - 1, count).astype(int):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(flipped)
        yield
    path.write_bytes(content)


def assert_one_line(error: BertkitError) -> None:
    assert error.exit_code in (2, 3)
    assert "\n" not in str(error)


# --- checkpoints ----------------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Two of them; the newer one is what is damaged."""
    for step in (1, 2):
        groups = {"model": {"weight": torch.randn(13, 37)}, "optimizer": {"weight/exp_avg": torch.randn(13, 37)}}
        store.save(tmp_path / "checkpoints", step, groups, {"step": step, "epoch": 0})
    return tmp_path / "checkpoints"


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_a_damaged_checkpoint_is_skipped_and_reported(checkpoints: Path, name: str, damage: str) -> None:
    DAMAGES[damage](checkpoints / "step-00000002" / name)
    with pytest.raises(BertkitError, match="step-00000002") as caught:
        store.load(checkpoints / "step-00000002")
    assert_one_line(caught.value)
    path, faults = store.latest(checkpoints)
    assert path == checkpoints / "step-00000001"
    assert len(faults) == 1
    assert damage == "swapped" or name in faults[0]


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_a_flipped_bit_in_a_checkpoint_is_found(checkpoints: Path, name: str) -> None:
    for _ in flips(checkpoints / "step-00000002" / name, FLIPS):
        with pytest.raises(BertkitError, match=name) as caught:
            store.load(checkpoints / "step-00000002")
        assert_one_line(caught.value)
    store.load(checkpoints / "step-00000002")


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
def test_a_file_of_another_checkpoint_is_found(checkpoints: Path, name: str) -> None:
    shutil.copy(checkpoints / "step-00000001" / name, checkpoints / "step-00000002" / name)
    path, faults = store.latest(checkpoints)
    assert path == checkpoints / "step-00000001"
    assert len(faults) == 1


@pytest.mark.parametrize("damage", ["deleted", "folder", "dangling", "file"])
def test_an_intact_folder_that_is_not_a_training_state_is_refused(checkpoints: Path, damage: str) -> None:
    path = checkpoints / "step-00000002"
    shutil.rmtree(path)
    if damage == "folder":
        path.mkdir()
    if damage == "dangling":
        path.symlink_to("nowhere")
    if damage == "file":
        path.write_text("x")
    assert store.latest(checkpoints)[0] == checkpoints / "step-00000001"


# --- models ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small fine-tuned model."""
    (tmp_path / "vocab.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + "\n".join("abcdefgh"), encoding="utf-8"
    )
    encoder = Bert(size("1/4/2", vocab_size=13, max_positions=7))
    whole = Model(encoder, TASK.objectives(encoder))
    tokenizer = WordPiece.load(tmp_path / "vocab.txt")
    save_model(tmp_path / "model", whole, tokenizer, metadata={"kind": "finetune", "task": TASK.record()})
    return tmp_path / "model"


def use(folder: Path) -> FileTask:
    """All that a prediction reads."""
    task = from_record(ModelFolder.open(folder).metadata["task"])
    _ = ModelFolder.open(folder).tokenizer
    ModelFolder.open(folder).load_model(task.objectives)
    return task


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_damaged_model_is_never_used(model: Path, name: str, damage: str) -> None:
    DAMAGES[damage](model / name)
    if (name, damage) == ("bertkit.json", "deleted"):
        # Without our record it is a folder of another maker: the weights load, the task is unknown.
        assert "task" not in ModelFolder.open(model).metadata
        return
    with pytest.raises(BertkitError, match="model") as caught:
        use(model)
    assert_one_line(caught.value)


@SOME_OR_ALL
@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_flipped_bit_in_a_model_is_found(model: Path, name: str, count: int) -> None:
    for _ in flips(model / name, count):
        with pytest.raises(BertkitError, match=name) as caught:
            use(model)
        assert_one_line(caught.value)
    assert use(model).labels == TASK.labels


# --- files of other makers, which have no checksums -----------------------------------------------------------------


@pytest.fixture
def hf_folder(model: Path) -> Path:
    """The same without our record."""
    (model / "bertkit.json").unlink()
    return model


@SOME_OR_ALL
@pytest.mark.parametrize("name", [name for name in MODEL_FILES if name != "bertkit.json"])
def test_a_damaged_file_of_transformers_is_refused_or_harmless(hf_folder: Path, name: str, count: int) -> None:
    content = (hf_folder / name).read_bytes()
    for damage in DAMAGES.values():
        copy = hf_folder.parent / "copy"
        shutil.copytree(hf_folder, copy)
        damage(copy / name)
        load_or_refuse(copy)
        shutil.rmtree(copy)
    for _ in flips(hf_folder / name, count):
        load_or_refuse(hf_folder)
    assert (hf_folder / name).read_bytes() == content


def load_or_refuse(folder: Path) -> None:
    try:
        _ = ModelFolder.open(folder).tokenizer
        ModelFolder.open(folder).load_model(TASK.objectives)
        _ = ModelFolder.open(folder).metadata
    except BertkitError as error:
        assert_one_line(error)


def header(**tensors: Any) -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
MALFORMED = {
    "nothing": b"",
    "short length": b"\x01\x02",
    "huge length": struct.pack("<Q", 2**63) + b"{}",
    "length beyond the file": struct.pack("<Q", 999) + b"{}",
    "not JSON": struct.pack("<Q", 2) + b"{x",
    "a list": struct.pack("<Q", 2) + b"[]",
    "bad UTF-8": struct.pack("<Q", 4) + b'{"\xff"',
    "no data": header(a=F32),
    "data too short": header(a=F32) + bytes(7),
    "data too long": header(a=F32) + bytes(9),
    "overlap": header(a=F32, b=F32) + bytes(8),
    "gap": header(a=F32, b={**F32, "data_offsets": [12, 20]}) + bytes(20),
    "backwards": header(a={**F32, "data_offsets": [8, 0]}) + bytes(8),
    "shape overflows": header(a={**F32, "shape": [2**63, 2**63]}) + bytes(8),
    "shape too large": header(a={**F32, "shape": [2**40]}) + bytes(8),
    "negative shape": header(a={**F32, "shape": [-2]}) + bytes(8),
    "shape of text": header(a={**F32, "shape": ["2"]}) + bytes(8),
    "unknown type": header(a={**F32, "dtype": "F33"}) + bytes(8),
    "no type": header(a={"shape": [2], "data_offsets": [0, 8]}) + bytes(8),
    "nested": struct.pack("<Q", 20_000) + b"[" * 20_000,
    "metadata of numbers": header(__metadata__={"a": 1}, a=F32) + bytes(8),
    "pickle": pickle.dumps({"a": 1}),
    "zip": b"PK\x03\x04" + bytes(64),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_safetensors_are_refused(tmp_path: Path, case: str) -> None:
    (tmp_path / "x.safetensors").write_bytes(MALFORMED[case])
    with pytest.raises(BertkitError, match=r"x\.safetensors is not a complete safetensors file") as caught:
        read_tensors(tmp_path / "x.safetensors")
    assert_one_line(caught.value)


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=200, deadline=2000)
def test_any_bytes_are_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, framed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.safetensors"
    path.write_bytes(struct.pack("<Q", len(content)) + content if framed else content)
    try:
        read_tensors(path)
    except BertkitError as error:
        assert_one_line(error)


# --- pickles, bombs and names ---------------------------------------------------------------------------------------


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("name", [*MODEL_FILES, "pytorch_model.bin", "model.safetensors.index.json"])
@pytest.mark.parametrize("zipped", [False, True])
def test_code_in_a_model_is_never_run(hf_folder: Path, name: str, zipped: bool) -> None:
    marker = hf_folder.parent / "PWNED"
    if name in ("pytorch_model.bin", "model.safetensors.index.json"):
        (hf_folder / "model.safetensors").unlink()
    if zipped:
        torch.save({"embeddings": Payload(marker)}, hf_folder / name)
    else:
        (hf_folder / name).write_bytes(pickle.dumps({"embeddings": Payload(marker)}))
    for read in (ModelFolder.load_encoder, lambda folder: folder.tokenizer, lambda folder: folder.metadata):
        try:
            read(ModelFolder.open(hf_folder))
        except BertkitError as error:
            assert_one_line(error)
            assert "weights_only" not in str(error)
    assert not marker.exists()


@pytest.mark.parametrize("name", [name for name in CHECKPOINT_FILES if name != "manifest.json"])
def test_code_in_a_checkpoint_is_never_run(checkpoints: Path, name: str) -> None:
    """Even where the manifest vouches for it."""
    path, marker = checkpoints / "step-00000002", checkpoints / "PWNED"
    (path / name).write_bytes(pickle.dumps(Payload(marker)))
    (path / "manifest.json").unlink()
    write_checksums(path / "manifest.json", {"format": 2, "step": 2})
    with pytest.raises(BertkitError, match=name):
        store.load(path)
    assert not marker.exists()


def test_a_zip_bomb_is_not_unpacked(hf_folder: Path) -> None:
    torch.save({"embeddings.word_embeddings.weight": torch.zeros(4_000_000)}, hf_folder / "large.bin")
    with (
        zipfile.ZipFile(hf_folder / "large.bin") as plain,
        zipfile.ZipFile(hf_folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in plain.infolist():
            packed.writestr(member.filename, plain.read(member))
    (hf_folder / "model.safetensors").unlink()
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin has .* bytes and would unpack to 16,"):
        ModelFolder.open(hf_folder).load_encoder()


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "..", "", "a/../../secret.safetensors", 7])
def test_names_in_an_index_are_never_paths(hf_folder: Path, name: Any) -> None:
    save_file({"secret": torch.ones(2)}, hf_folder.parent / "secret.safetensors")
    (hf_folder / "model.safetensors").unlink()
    (hf_folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"secret": name}}))
    with pytest.raises(BertkitError, match=r"index\.json (names the file|has no weight_map)"):
        ModelFolder.open(hf_folder).load_encoder()


HOSTILE = [
    "../../etc/x",
    "..\\x",
    "con",
    "x" * 300,
    "a\0b",
    "$(touch x)",
    "line\nline",
    "\x1b[31mred",
    "ｅｖｉｌ",
    "/etc/x",
]


def test_labels_are_never_paths(tmp_path: Path) -> None:
    task = TextClassificationTask(name="files:t.csv", metric="accuracy", labels=tuple(HOSTILE))
    (tmp_path / "vocab.txt").write_text("\n".join(SUBWORDS[:6]), encoding="utf-8")
    encoder = Bert(size("1/4/2", vocab_size=6, max_positions=7))
    model = Model(encoder, task.objectives(encoder))
    tokenizer = WordPiece.load(tmp_path / "vocab.txt")
    save_model(tmp_path / "out" / "model", model, tokenizer, metadata={"task": task.record()})
    assert ModelFolder.open(tmp_path / "out").metadata["task"]["labels"] == HOSTILE
    config = json.loads((tmp_path / "out" / "model" / "config.json").read_text(encoding="utf-8"))
    assert list(config["id2label"].values()) == HOSTILE
    assert {path.name for path in tmp_path.rglob("*")} == {"vocab.txt", "out", "model", *MODEL_FILES}


@pytest.mark.parametrize("name", [*HOSTILE, "..", "a" * 5000])
def test_errors_of_hostile_model_names_are_one_line(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertkitError, match="no model") as caught:
        ModelFolder.open(name)
    assert_one_line(caught.value)
    assert list(tmp_path.iterdir()) == []
