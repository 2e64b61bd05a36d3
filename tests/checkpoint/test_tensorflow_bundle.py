"""Tensors of checkpoints that an independent writer made; damaged and dishonest files are one line."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checkpoint.tensorflow_writer import DTYPES, field, make_entry, make_table, write_checkpoint
from torch import Tensor

from bertkit.checkpoint import tensorflow_bundle
from bertkit.checkpoint.tensorflow_bundle import Bundle
from bertkit.errors import BertkitError

NAMES = st.text("abc/_", min_size=1, max_size=9)
SHAPES = st.lists(st.integers(0, 5), max_size=4)


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name in draw(st.sets(NAMES, max_size=9)):
        dtype = draw(st.sampled_from(list(DTYPES)))
        numbers = torch.randn(draw(SHAPES), generator=torch.Generator().manual_seed(len(found))) * 100
        found[name] = numbers > 0 if dtype == torch.bool else numbers.to(dtype)
    return found


@given(tensors(), st.integers(1, 3))
@settings(max_examples=60)
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, written: dict[str, Tensor], num_shards: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, written, num_shards=num_shards)
    bundle = Bundle(folder / "bert_model.ckpt.index")
    read = bundle.read(bundle.entries)
    bundle.verify(bundle.entries)
    shutil.rmtree(folder)
    assert read.keys() == written.keys()
    for name, tensor in written.items():
        assert (read[name].dtype, read[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(read[name], tensor)


def write_three(folder: Path) -> Path:
    write_checkpoint(folder, {"a": torch.arange(7.0), "b/c": torch.ones(3, 5), "b/d": torch.tensor(13)}, num_shards=2)
    return folder / "bert_model.ckpt.index"


def read_all(index: Path) -> dict[str, Tensor]:
    bundle = Bundle(index)
    return bundle.read(bundle.entries)


def test_every_flipped_byte_of_every_file_is_found(tmp_path: Path) -> None:
    index = write_three(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        content = file.read_bytes()
        for at in range(len(content)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
            with pytest.raises(BertkitError, match="is damaged"):
                read_all(index)
        file.write_bytes(content)
    assert len(read_all(index)) == 3


def test_a_damaged_tensor_is_named(tmp_path: Path) -> None:
    index = write_three(tmp_path)
    data = tmp_path / "bert_model.ckpt.data-00001-of-00002"
    data.write_bytes(bytes(len(data.read_bytes())))
    with pytest.raises(BertkitError, match=r"data-00001-of-00002 is damaged: the checksum of b/c is wrong") as caught:
        Bundle(index).verify(["b/c"])
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("size", [0, 1, 27])
def test_a_data_file_that_was_cut_off_is_an_error(tmp_path: Path, size: int) -> None:
    index = write_three(tmp_path)
    data = tmp_path / "bert_model.ckpt.data-00000-of-00002"
    data.write_bytes(data.read_bytes()[:size])
    with pytest.raises(BertkitError, match=f"00000-of-00002 is cut off: it has {size} bytes, and a would end at 28"):
        Bundle(index)


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    index = write_three(tmp_path)
    (tmp_path / "bert_model.ckpt.data-00001-of-00002").unlink()
    with pytest.raises(BertkitError, match=r"data-00001-of-00002 is missing"):
        Bundle(index)


def test_exchanged_data_files_are_found(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"a": torch.ones(7), "b": torch.zeros(7)}, num_shards=2)
    first, second = sorted(tmp_path.glob("*.data*"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(BertkitError, match="the checksum of a is wrong"):
        read_all(tmp_path / "bert_model.ckpt.index")


def write_index(folder: Path, *entries: bytes, header: bytes = field(1, 1)) -> Path:
    """An index with right checksums, whose content is not honest, and a data file of 16 bytes."""
    named = {f"tensor {number}".encode(): entry for number, entry in enumerate(entries)}
    (folder / "x.index").write_bytes(make_table({b"": header, **named}))
    (folder / "x.data-00000-of-00001").write_bytes(bytes(16))
    return folder / "x.index"


PLACE = {"shard": 0, "offset": 0, "size": 16, "checksum": 0}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (make_entry(1, [2**40], shard=0, offset=0, size=2**42, checksum=0), "is cut off: it has 16 bytes"),
        (make_entry(1, [4], shard=0, offset=2**63, size=16, checksum=0), "is cut off: it has 16 bytes"),
        (make_entry(1, [2**63, 2**63], **PLACE), r"a tensor of the shape .* has 16 bytes"),
        (make_entry(1, [2**64 - 1], **PLACE), r"a tensor of the shape .* has 16 bytes"),  # -1, for unknown
        (make_entry(1, [5], **PLACE), r"a tensor of the shape \(5,\) has 16 bytes"),
        (make_entry(1, [1] * 9, **PLACE), "a tensor has 9 dimensions"),
        (make_entry(1, [0, 2**63], shard=0, offset=0, size=0, checksum=0), r"a tensor has the shape \(0, 9223"),
        (make_entry(1, [4], **PLACE) + field(7, field(1, 1)), "it has tensors in slices"),
        (make_entry(1, [4], shard=1, offset=0, size=16, checksum=0), "it names data file 2 of 1"),
        (b"\x80" * 99, "a number has no end"),
        (b"\x12\xff\x7f", "a message is cut off"),
    ],
)
def test_an_entry_that_is_not_honest_is_one_line(tmp_path: Path, entry: bytes, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(BertkitError, match=message) as caught:
        Bundle(write_index(tmp_path, entry))
    assert "\n" not in str(caught.value)
    assert time.monotonic() - started < 2


def test_tensors_that_share_bytes_are_an_error(tmp_path: Path) -> None:
    """Otherwise a small file could have any number of large tensors."""
    entry = make_entry(1, [4], **PLACE)
    with pytest.raises(BertkitError, match="tensor 1 overlaps another tensor"):
        Bundle(write_index(tmp_path, entry, entry))


def test_the_other_order_of_bytes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="most significant byte first"):
        Bundle(write_index(tmp_path, header=field(1, 1) + field(2, 1)))


def test_a_tensor_of_texts_is_not_read(tmp_path: Path) -> None:
    """Its checksum has rules of its own; training runs of TensorFlow 2 have one such tensor."""
    bundle = Bundle(write_index(tmp_path, make_entry(7, [1], **PLACE)))
    bundle.verify(bundle.entries)
    with pytest.raises(BertkitError, match="tensor 0 has the type 7, which is not one of numbers"):
        bundle.read(bundle.entries)


def test_a_huge_index_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow_bundle, "MOST_INDEX_BYTES", 99)
    with pytest.raises(BertkitError, match="has more than 99 bytes: it is not the index of a BERT"):
        Bundle(write_three(tmp_path))


def test_names_that_are_not_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.index").write_bytes(make_table({b"": field(1, 1), b"\xff": b""}))
    with pytest.raises(BertkitError, match="is damaged"):
        Bundle(tmp_path / "x.index")


@given(st.binary(max_size=199))
@settings(max_examples=50)
def test_any_bytes_are_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    index = tmp_path_factory.mktemp("any") / "x.index"
    index.write_bytes(content)
    with pytest.raises(BertkitError, match="is damaged"):
        Bundle(index)
