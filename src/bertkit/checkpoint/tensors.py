"""Tensors to and from safetensors files. Nothing is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertkit.errors import data_error
from bertkit.storage.locations import refuse_lfs_pointers

MOST_HEADER_BYTES = 4_000_000
"""The longest header that is read: some 30,000 names. A million names would take a minute."""


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors of any shape and type; two that share memory are both written in full."""
    own: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        storage = plain.untyped_storage().data_ptr()
        own[name] = plain.clone() if storage in seen else plain
        seen.add(storage)
    path.touch()
    mode = path.stat().st_mode
    # transformers refuses a file without the name of the library that its tensors are for.
    save_file(own, path, metadata={"format": "pt"})
    # safetensors makes a file that only its owner can read, whatever the umask is.
    path.chmod(mode)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file, on the CPU; a missing or damaged file is a data error that names it."""
    refuse_lfs_pointers([path])
    try:
        _check_header(path)
        return load_file(path)
    except FileNotFoundError as error:
        raise data_error(f"{path} is missing.") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:  # a size beyond 2^63 is a TypeError of torch
        reason = str(error).partition("\n")[0]  # torch adds where in its own code
        raise data_error(f"{path} is not a complete safetensors file: {reason}.") from error


def is_finite(tensor: Tensor) -> bool:
    """Whether a tensor has neither NaN nor infinity.

    The sum of the numbers needs no memory, and is not finite if one of them is not. It may also overflow, so only a sum
    that is not finite makes a look at every number necessary.
    """
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def _check_header(path: Path) -> None:
    """Compare the length that the header declares with the file's, before any of it is read."""
    with path.open("rb") as file:
        declared = int.from_bytes(file.read(8), "little")
    size = path.stat().st_size
    if declared > size:
        raise ValueError(f"its header would be {declared:,} bytes of {size:,}")
    if declared > MOST_HEADER_BYTES:
        raise ValueError(f"its header has {declared:,} bytes; bertkit reads {MOST_HEADER_BYTES:,} at most")
