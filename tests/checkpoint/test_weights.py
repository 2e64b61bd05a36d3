"""The weights of a model folder in every format of Hugging Face, and files that are damaged or hold something else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.serialization import set_crc32_options

from bertkit.checkpoint.weights import INDEX, PICKLED, PICKLED_INDEX, WEIGHTS, read_weights
from bertkit.errors import BertkitError

TENSORS = {f"layer.{number}": torch.full((number + 2, 3), float(number)) for number in range(5)}


def assert_weights(folder: Path, file: str) -> None:
    found, tensors = read_weights(folder)
    assert found == folder / file
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())


def test_one_safetensors_file_comes_before_other_formats(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / WEIGHTS)
    for other in (INDEX, PICKLED):
        (tmp_path / other).write_bytes(b"not read")
    assert_weights(tmp_path, WEIGHTS)


def test_weights_in_several_files(tmp_path: Path) -> None:
    places = {name: f"model-0000{number % 2 + 1}-of-00002.safetensors" for number, name in enumerate(TENSORS)}
    for file in set(places.values()):
        save_file({name: TENSORS[name] for name in places if places[name] == file}, tmp_path / file)
    index = tmp_path / INDEX
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    assert_weights(tmp_path, INDEX)
    index.write_text(json.dumps({"weight_map": {**places, "absent": "model-00001-of-00002.safetensors"}}))
    with pytest.raises(BertkitError, match="names 1 tensors that no file has, such as absent"):
        read_weights(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(BertkitError, match=r'names the file "model-00002.*", which is not'):
        read_weights(tmp_path)


def test_torch_files_in_parts_are_read_and_hold_tensors_only(tmp_path: Path) -> None:
    places = {name: f"pytorch_model-0000{number % 2 + 1}-of-00002.bin" for number, name in enumerate(TENSORS)}
    for file in set(places.values()):
        torch.save({name: TENSORS[name] for name in places if places[name] == file}, tmp_path / file)
    (tmp_path / PICKLED_INDEX).write_text(json.dumps({"weight_map": places}))
    assert_weights(tmp_path, PICKLED_INDEX)
    part = tmp_path / "pytorch_model-00002-of-00002.bin"
    torch.save({"layer.1": torch.zeros(1).expand(10**9)}, part)
    with pytest.raises(BertkitError, match=r"pytorch_model-00002.*its tensors would need"):
        read_weights(tmp_path)
    torch.save({"layer.1": Path("code")}, part)
    with pytest.raises(BertkitError, match=r"pytorch_model-00002.*damaged or holds more than tensors"):
        read_weights(tmp_path)
    (tmp_path / PICKLED_INDEX).write_text(json.dumps({"weight_map": {"layer.1": "../secret.bin"}}))
    with pytest.raises(BertkitError, match="which is not in the folder"):
        read_weights(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 3}}'])
def test_an_index_without_a_map_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / INDEX).write_text(content)
    with pytest.raises(BertkitError, match="has no weight_map from tensors to files"):
        read_weights(tmp_path)


@pytest.mark.parametrize("zipped", [True, False])
def test_files_of_torch(tmp_path: Path, zipped: bool) -> None:
    torch.save(TENSORS, tmp_path / PICKLED, _use_new_zipfile_serialization=zipped)
    assert_weights(tmp_path, PICKLED)


@pytest.mark.parametrize("content", [torch.ones(2), {"a": 3}, ["a"]])
def test_a_file_of_torch_without_named_tensors_is_an_error(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / PICKLED)
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin does not hold tensors by name"):
        read_weights(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04" + bytes(99), b"\x80\x02", b"x" * 99])
def test_a_damaged_file_of_torch_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PICKLED).write_bytes(content)
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin is damaged") as caught:
        read_weights(tmp_path)
    assert "weights_only" not in str(caught.value)


def test_a_flipped_bit_in_a_number_of_a_zip_is_an_error(tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / PICKLED)
    content = bytearray((tmp_path / PICKLED).read_bytes())
    content[content.find(torch.full((1,), 3.0).numpy().tobytes()) + 1] ^= 4
    (tmp_path / PICKLED).write_bytes(content)
    assert not torch.equal(torch.load(tmp_path / PICKLED)["layer.3"], TENSORS["layer.3"]), "torch does not notice"
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin is damaged: Bad CRC-32 for file .*/data/3"):
        read_weights(tmp_path)


def test_a_file_that_torch_wrote_without_checksums_is_read(tmp_path: Path) -> None:
    set_crc32_options(False)
    try:
        torch.save(TENSORS, tmp_path / PICKLED)
    finally:
        set_crc32_options(True)
    assert_weights(tmp_path, PICKLED)


@pytest.mark.parametrize(("place", "value"), [(46, 0xFF), (6, 99)])
def test_a_flipped_byte_in_the_directory_of_a_zip_is_an_error(tmp_path: Path, place: int, value: int) -> None:
    """A name that is not UTF-8, and a version of the format that zipfile does not know."""
    torch.save(TENSORS, tmp_path / PICKLED)
    content = bytearray((tmp_path / PICKLED).read_bytes())
    entry = content.find(b"PK\x01\x02")
    content[entry + 9] |= 0x08  # the names are UTF-8
    content[entry + place] = value
    (tmp_path / PICKLED).write_bytes(content)
    with pytest.raises(BertkitError, match=r"pytorch_model\.bin is damaged: "):
        read_weights(tmp_path)


def test_a_folder_without_weights_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"has no weights: neither model\.safetensors nor pytorch_model\.bin"):
        read_weights(tmp_path)


def test_a_pointer_of_git_lfs_is_not_a_file_of_torch(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(BertkitError, match="is a pointer of Git LFS"):
        read_weights(tmp_path)
