"""Tensors in safetensors files: every type and layout, and files that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from bertkit.checkpoint.tensors import read_tensors, write_tensors
from bertkit.errors import BAD_DATA, BertkitError


def bytes_of(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def test_every_type_of_tensor_is_loaded_bit_for_bit(tmp_path: Path) -> None:
    wide = torch.randn(7, 13)
    tensors = {
        "number": torch.tensor(0.1),
        "empty": torch.empty(0, 3),
        "bool": torch.tensor([True, False]),
        "bfloat16": torch.randn(5).bfloat16(),
        "float16": torch.randn(5).half(),
        "float64": torch.randn(5).double(),
        "int64": torch.tensor([-(2**63), 2**63 - 1]),
        "odd": torch.tensor([float("nan"), float("inf"), -0.0]),
        "transposed": wide.t(),
        "strided": wide[:, ::3],
        "part": wide[2:4],
        "expanded": torch.ones(1).expand(5),
        "tied": wide,
        "tied too": wide,
        "trained": torch.nn.Parameter(torch.randn(3)),
    }
    write_tensors(tmp_path / "tensors.safetensors", tensors)
    loaded = read_tensors(tmp_path / "tensors.safetensors")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        found = loaded[name]
        assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape), name
        assert torch.equal(bytes_of(found), bytes_of(tensor)), name


def test_transformers_finds_the_format_of_the_tensors(tmp_path: Path) -> None:
    write_tensors(tmp_path / "tensors.safetensors", {"a": torch.ones(2)})
    with safe_open(tmp_path / "tensors.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_file_has_the_permissions_of_other_new_files(tmp_path: Path) -> None:
    write_tensors(tmp_path / "tensors.safetensors", {"a": torch.ones(2)})
    (tmp_path / "other").touch()
    assert (tmp_path / "tensors.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


HUGE = json.dumps({"a": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}).encode()


@pytest.mark.parametrize(
    "content",
    [
        *(None, b"", b"x" * 99, bytes(8), (99).to_bytes(8, "little") + b"{}"),
        len(HUGE).to_bytes(8, "little") + HUGE,
    ],
)
def test_a_missing_or_damaged_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tensors.safetensors"
    if content is not None:
        path.write_bytes(content)
    message = "is missing" if content is None else "is not a complete safetensors file"
    with pytest.raises(BertkitError, match=rf"tensors\.safetensors {message}") as caught:
        read_tensors(path)
    assert caught.value.exit_code == BAD_DATA
    assert "torch/csrc" not in str(caught.value)


def test_a_pointer_of_git_lfs_is_not_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "tensors.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(BertkitError, match="is a pointer of Git LFS"):
        read_tensors(path)
