"""The weights of a model folder under Hugging Face's names, in any of its formats or in that of TensorFlow."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from bertkit.checkpoint import tensorflow
from bertkit.checkpoint.tensors import read_tensors
from bertkit.errors import data_error
from bertkit.storage.atomic import read_json
from bertkit.storage.hub import describe_partial_copy
from bertkit.storage.locations import refuse_lfs_pointers

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"

_MOST_COPIES = 2
"""How often the tensors of a file may have its length in all: tied weights are listed twice and stored once."""

_BLOCK = 1 << 24
"""Bytes that are read at a time for a checksum."""


def read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """The file that has the weights of ``folder`` (or the index of several), and the tensors by name.

    Tried in this order: one safetensors file, several with an index, torch's pickle, one or several, of which only
    tensors are loaded, and a checkpoint of TensorFlow.
    """
    file = find_weights(folder)
    if file.name not in _FORMATS:
        return tensorflow.read_weights(folder)
    return file, _FORMATS[file.name](file)


def find_weights(folder: Path) -> Path:
    """The file that ``read_weights`` reads; a data error if there is none."""
    for file in (folder / name for name in _FORMATS):
        if file.exists():
            if not file.is_file():  # a pipe would be waited for
                raise data_error(f"{file} is not a file.")
            return file
    if tensorflow.is_tensorflow(folder):
        return tensorflow.find_index(folder)
    hint = describe_partial_copy(folder)
    raise data_error(f"{folder} has no weights: neither {WEIGHTS} nor {PICKLED} is there.{hint}")


class FirstLoad:
    """The file that the weights of a folder were loaded from first. A copy in another process has a first load of its
    own, perhaps on another machine."""

    def __init__(self) -> None:
        self._found: tuple[int, int, int] | None = None

    def __getstate__(self) -> dict[str, None]:
        return {"_found": None}

    def require_same(self, file: Path) -> None:
        """A data error if another model has taken the place of ``file`` since the first call."""
        status = file.stat()
        found = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._found not in (None, found):
            raise data_error(f"{file} has changed since the model was loaded. Load it again.")
        self._found = found


def _read_parts(index: Path, pattern: str, read: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
    """The tensors of all files in the index, which ``pattern`` matches. Names in it are compared with the folder's and
    never followed as paths."""
    content = read_json(index)
    places = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise data_error(f"{index} has no weight_map from tensors to files.")
    present = {file.name: file for file in index.parent.glob(pattern) if file.is_file()}
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(places.values())):
        if name not in present:
            raise data_error(f'{index} names the file "{name}", which is not in the folder.')
        tensors |= read(present[name])
    absent = sorted(set(places) - set(tensors))
    if absent:
        raise data_error(f"{index} names {len(absent)} tensors that no file has, such as {absent[0]}.")
    return tensors


def _read_pickled(path: Path) -> dict[str, Tensor]:
    """torch's own format. torch refuses code in it, and does not compare its checksums."""
    refuse_lfs_pointers([path])
    size = path.stat().st_size
    _check_archive(path, size)
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types, and some of its messages advise running the code
        raise data_error(f"{path} is damaged or holds more than tensors ({type(error).__name__}).") from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise data_error(f"{path} does not hold tensors by name.")
    _check_tensors(path, size, loaded)
    return loaded


def _check_tensors(path: Path, size: int, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not plain, or larger in all than a file of ``size`` bytes can hold.

    A tensor with stride 0 has one number in the file and any number in memory.
    """
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            raise data_error(f"{path}: {name} is not a plain tensor (sparse, quantized or without data).")
    needed = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if needed > _MOST_COPIES * size:
        raise data_error(f"{path} has {size:,} bytes, and its tensors would need {needed:,}: it is refused.")


def _check_archive(path: Path, size: int) -> None:
    """Refuse a zip file that unpacks to more than its ``size`` in bytes, or in which a member has another checksum.

    The checksums take half a second per GB. torch's older format is no zip file, and has none.
    """
    unpacked = 0
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                return
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            for member in archive.infolist() if unpacked <= size else ():
                if member.CRC:  # torch may be told to write 0 in its place
                    _read_to_end(archive, member)
    # Names that are no text, other versions of the format, encryption, broken compression.
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, zlib.error) as error:
        raise data_error(f"{path} is damaged: {error}.") from error
    if unpacked > size:
        raise data_error(
            f"{path} has {size:,} bytes and would unpack to {unpacked:,}: it is refused, as it may be a zip bomb."
        )


def _read_to_end(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raises zipfile.BadZipFile if the member has another checksum."""
    with archive.open(member) as file:
        while file.read(_BLOCK):
            pass


_FORMATS: Mapping[str, Callable[[Path], dict[str, Tensor]]] = {
    WEIGHTS: read_tensors,
    INDEX: lambda index: _read_parts(index, "*.safetensors", read_tensors),
    PICKLED: _read_pickled,
    PICKLED_INDEX: lambda index: _read_parts(index, "*.bin", _read_pickled),
}
"""The function that reads each file of Hugging Face, in the order of preference."""
