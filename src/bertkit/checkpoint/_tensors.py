"""Tensors to and from safetensors files; headers are checked before anything is believed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertkit.errors import data_error


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors to ``path``; each gets storage of its own, so views and tied tensors are fine."""
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(own, path, metadata=dict(metadata) if metadata else None)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file, on the CPU; a file that is not whole is an error that names it."""
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise data_error(f"{path} is not a whole safetensors file: {error}.") from error
