"""Models that are malformed or dishonest: one line, nothing loaded in part, nothing written, nothing outside."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from tests.checkpoint.tensorflow_writer import field, make_table

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.checkpoint.tensors import read_tensors
from bertkit.cli import app
from bertkit.encoders.bert import Bert, size
from bertkit.errors import BAD_DATA, WRONG_USAGE, BertkitError
from bertkit.model import Model
from bertkit.text.wordpiece import train

SECONDS = 10


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder without checksums, as another library would save it."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tokenizer = train(["river stone early garden"] * 7, vocab_size=67)
    encoder = Bert(size("1/12/2", vocab_size=tokenizer.vocab_size, max_positions=37, intermediate_size=13))
    save_model(folder, Model(encoder, {}), tokenizer, metadata={})
    (folder / "bertkit.json").unlink()
    return folder


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, in a folder of its own."""
    return Path(shutil.copytree(original, tmp_path / "inside" / "model"))


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Import a folder, which must end with one line soon and without a trace on the disk; return the line."""

    def run(folder: Path, exit_code: int = BAD_DATA) -> str:
        before, started = sorted(tmp_path.rglob("*")), time.process_time()
        assert app.run(["import", str(folder), "-o", str(tmp_path / "out"), "--quiet"]) == exit_code
        assert time.process_time() - started < SECONDS
        assert sorted(tmp_path.rglob("*")) == before
        printed = capsys.readouterr().err
        assert printed.startswith("error: ")
        assert printed.count("\n") == 1
        assert "bug in bertkit" not in printed
        return printed

    return run


def tensor(dtype: str = "F32", shape: Any = (2, 3), offsets: Any = (0, 24)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HEADERS: dict[str, object] = {
    "not an object": [],
    "a number": 7,
    "a tensor that is a number": {"a": 7},
    "no shape": {"a": {"dtype": "F32", "data_offsets": [0, 24]}},
    "no offsets": {"a": {"dtype": "F32", "shape": [2, 3]}},
    "no dtype": {"a": {"shape": [2, 3], "data_offsets": [0, 24]}},
    "unknown dtype": {"a": tensor("F33")},
    "dtype in lower case": {"a": tensor("f32")},
    "negative length": {"a": tensor(shape=(-2, -3))},
    "a fraction as length": {"a": tensor(shape=(2.5, 3))},
    "a text as length": {"a": tensor(shape=("2", 3))},
    "2^63 as length": {"a": tensor(shape=(2**63, 3))},
    "lengths that overflow": {"a": tensor(shape=(2**32, 2**32))},
    "lengths that overflow to 24 bytes": {"a": tensor(shape=(2**62 + 6,), offsets=(0, 24))},
    "more than the offsets": {"a": tensor(shape=(2, 4))},
    "less than the offsets": {"a": tensor(shape=(2, 2))},
    "offsets in the wrong order": {"a": tensor(offsets=(24, 0))},
    "negative offsets": {"a": tensor(offsets=(-24, 0))},
    "one offset": {"a": tensor(offsets=(0,))},
    "three offsets": {"a": tensor(offsets=(0, 12, 24))},
    "an end after the file": {"a": tensor(shape=(2, 30), offsets=(0, 240))},
    "a beginning after a hole": {"a": tensor(shape=(2, 2), offsets=(8, 24))},
    "bytes after the last tensor": {"a": tensor(shape=(2, 2), offsets=(0, 16))},
    "overlapping tensors": {"a": tensor(), "b": tensor(shape=(3,), offsets=(12, 24))},
    "the same bytes twice": {"a": tensor(), "b": tensor()},
    "metadata that are a list": {"__metadata__": [], "a": tensor()},
    "metadata of numbers": {"__metadata__": {"format": 7}, "a": tensor()},
    "nested deeply": {"a": json.loads("[" * 100 + "]" * 100)},
}


@pytest.mark.parametrize("case", HEADERS)
def test_every_malformed_header_is_refused_as_by_the_reference(
    model: Path, refuse: Callable[..., str], case: str
) -> None:
    header = json.dumps(HEADERS[case]).encode()
    file = model / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(24))
    with pytest.raises((SafetensorError, OverflowError)), safe_open(str(file), "pt") as opened:
        for name in opened.keys():  # noqa: SIM118
            opened.get_tensor(name)
    assert "model.safetensors is not a complete safetensors file" in refuse(model)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(8),
        (2).to_bytes(8, "little") + b"{",
        (2).to_bytes(8, "little") + b"\xff\xff",
        (9).to_bytes(8, "little") + b"[" * 9,
        (4_000_001).to_bytes(8, "little") + b" " * 4_000_001,
        (3_000_000).to_bytes(8, "little") + b"[" * 3_000_000,
    ],
)
def test_a_header_that_is_no_json_is_refused(model: Path, refuse: Callable[..., str], content: bytes) -> None:
    (model / "model.safetensors").write_bytes(content)
    assert "model.safetensors is not a complete safetensors file" in refuse(model)


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a\0b", "", "..", "con", "a\nb\x1b[31m", "$(touch x)"])
def test_names_of_tensors_are_never_used_as_paths(model: Path, tmp_path: Path, name: str) -> None:
    weights = load_file(model / "model.safetensors")
    save_file({**weights, name: torch.ones(3)}, model / "model.safetensors", metadata={"format": "pt"})
    before = {path.name for path in tmp_path.parent.iterdir()}
    assert read_tensors(model / "model.safetensors")[name].tolist() == [1, 1, 1]
    assert app.run(["import", str(model), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert {path.name for path in tmp_path.parent.iterdir()} == before
    assert not (tmp_path / "x").exists()
    assert name not in load_file(tmp_path / "out" / "model.safetensors")


@pytest.mark.parametrize("file", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
@pytest.mark.parametrize("place", ["../other.safetensors", "{}/other.safetensors", "sub/../other.safetensors", "", "."])
def test_an_index_does_not_lead_out_of_its_folder(
    model: Path, refuse: Callable[..., str], file: str, place: str
) -> None:
    outside = model.parent / "other.safetensors"
    (model / "model.safetensors").rename(outside)
    shutil.copy(outside, model.parent / "other.bin")
    (model / "sub").mkdir()
    names = dict.fromkeys(load_file(outside), place.format(model.parent))
    (model / file).write_text(json.dumps({"weight_map": names}))
    assert "which is not in the folder" in refuse(model)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_folder_a_pipe_or_a_device_in_place_of_a_file_is_refused(
    model: Path, refuse: Callable[..., str], make: Callable[[Path], None]
) -> None:
    for name in ("model.safetensors", "config.json"):
        (model / name).unlink()
        make(model / name)
        assert name in refuse(model, exit_code=WRONG_USAGE if name == "config.json" else BAD_DATA)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": 2**40, "num_attention_heads": 2},
        {"vocab_size": 10**9},
        {"num_hidden_layers": 10**9},
        {"intermediate_size": 2**50},
        {"max_position_embeddings": 2**45},
        {"type_vocab_size": 2**45},
        {"hidden_size": -12},
        {"hidden_size": "12"},
        {"hidden_size": 1e300},
        {"num_attention_heads": 0},
        {"layer_norm_eps": "nan"},
        {"hidden_act": "__import__('os').system('touch x')"},
        {"pruned_heads": {"0": [0]}},
        {"id2label": {"0": "a", "7": "b"}, "architectures": ["BertForSequenceClassification"]},
    ],
)
def test_a_configuration_that_asks_for_terabytes_or_is_senseless_is_refused(
    model: Path, refuse: Callable[..., str], change: dict[str, object]
) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **change}))
    refuse(model)


@pytest.mark.parametrize(
    ("name", "exit_code"),
    [("../../x", BAD_DATA), ("a..b", BAD_DATA), (".os", BAD_DATA), ("os.path", WRONG_USAGE), ("absent.x", WRONG_USAGE)],
)
def test_a_type_of_model_is_never_a_path(model: Path, refuse: Callable[..., str], name: str, exit_code: int) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "model_type": name}))
    refuse(model, exit_code=exit_code)


@pytest.mark.parametrize("content", ["", "[]", "null", "{", "[" * 10**5, '{"model_type": ["bert"]}', "\xff"])
def test_a_configuration_that_is_no_object_is_refused(model: Path, refuse: Callable[..., str], content: str) -> None:
    (model / "config.json").write_bytes(content.encode("latin-1"))
    assert "config.json" in refuse(model)


@pytest.mark.parametrize("index", [b"", b"x" * 99, make_table({}), make_table({b"": field(1, 1), b"a": b"\x80" * 50})])
def test_a_checkpoint_of_tensorflow_that_is_none_is_refused(
    model: Path, refuse: Callable[..., str], index: bytes
) -> None:
    (model / "config.json").rename(model / "bert_config.json")
    (model / "model.safetensors").unlink()
    (model / "x.index").write_bytes(index)
    (model / "x.data-00000-of-00001").write_bytes(b"")
    assert "x.index" in refuse(model)


def test_the_file_checkpoint_does_not_lead_out_of_its_folder(model: Path, refuse: Callable[..., str]) -> None:
    (model / "config.json").rename(model / "bert_config.json")
    (model / "model.safetensors").unlink()
    for folder in (model, model.parent):
        (folder / "x.index").write_bytes(make_table({b"": field(1, 1)}))
        (folder / "x.data-00000-of-00001").write_bytes(b"")
    for named in ("../y", "/etc/passwd", "..", "x.index/.."):
        (model / "checkpoint").write_text(f'model_checkpoint_path: "{named}"\n')
        assert "names no checkpoint of" in refuse(model)
    (model / "checkpoint").unlink()
    os.mkfifo(model / "checkpoint")
    assert "x.index has no layer" in refuse(model), "a pipe is not read"


def test_a_damaged_model_is_not_loaded_in_part(model: Path) -> None:
    """The last tensor has another shape: no module has any of the weights before it."""
    weights = load_file(model / "model.safetensors")
    weights["pooler.dense.bias"] = torch.ones(13)
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BertkitError, match=r"has pooler\.dense\.bias as 13 instead of 12"):
        ModelFolder.open(model).load_encoder()
