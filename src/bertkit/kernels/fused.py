"""Compiled passes: work of training and inference on a CPU that torch does in many sweeps over memory, or slowly.

torch makes one sweep per operation, so dropout, residual and LayerNorm of a sub-layer take ten sweeps. Where bfloat16
products are fast (AMX), these sweeps are most of a step, and the products themselves are far from the speed of the
processor. The C compiler of the machine (``cc``) compiles the C files of this folder once, in seconds, into the
user's cache folder. Without a compiler torch computes the same: dropout masks are equal, results differ by rounding.

``fused_training.py``, ``update.py``, ``fused_inference.py``, ``float_products.py``, ``int8_products.py``, ``amx.py``
and ``amx_attention.py`` call the functions; this module compiles and loads them.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from bertkit.errors import BertkitError
from bertkit.storage.atomic import make_folder, write_file
from bertkit.storage.locks import exclusive_lock
from bertkit.storage.user_cache import user_cache

_FOLDER = Path(__file__).parent
_HEADERS = ("fused.h", "fused_training.h", "products.h", "amx.h")
_SOURCES = (
    *("fused_training.c", "fused_inference.c", "float_products.c", "int8_products.c"),
    *("amx_products.c", "amx_attention.c", "update.c"),
)
_COMPILER = "cc"
_FLAGS = (
    "-O3",
    "-march=native",
    "-fopenmp",
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
)
_LINK_FLAGS = (
    "-shared",
    "-fopenmp",
    "-lm",
    "-Wl,-Bsymbolic",  # layer_norm and others are also names of functions of other libraries
)
_PROCESSOR = ("model name", "flags", "CPU implementer", "CPU part", "Features")
"""The lines of /proc/cpuinfo that ``-march=native`` depends on."""

_MOST_SECONDS = 600
"""For a call of the compiler: up to three on an idle core, and more than 60 were seen on a busy one."""

_DIGEST_BYTES = 32

_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
FORMATS = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
"""The number formats of the passes."""

MOST_COLUMNS = 48
"""Columns of a panel of the widest processors: ``WIDTH`` of products.h."""

_FACTOR = (_POINTER, _INT, _INT, _LONG)
_DROP = (_INT, _LONG, _INT, _FLOAT)
_OF_TRAINING = {
    "dropout": (_POINTER, _POINTER, _LONG, _LONG, _INT, _FLOAT),
    "split_heads": (*[_POINTER] * 3, *[_LONG] * 6),
    "merge_heads": (*[_POINTER] * 3, *[_LONG] * 6),
    "softmax_dropout": (*[_POINTER] * 4, *[_LONG] * 7, _INT),
    "softmax_dropout_backward": (_POINTER, _POINTER, _POINTER, _LONG, _LONG),
    "log_sum_exp": (_POINTER, _LONG, _POINTER, _LONG, _LONG),
    "cross_entropy_backward": (_POINTER, _LONG, *[_POINTER] * 3, *[_LONG] * 3, _FLOAT),
    "residual_norm": (*[_POINTER] * 8, _LONG, _LONG, _FLOAT, *_DROP),
    "residual_norm_backward": (*[_POINTER] * 9, _LONG, _LONG, _LONG, *_DROP),
}
"""Their names in C end with that of a number format."""

_SIGNATURES = {f"{name}_{each}": types for name, types in _OF_TRAINING.items() for each in FORMATS.values()} | {
    "attend_rows": (*[_POINTER] * 4, _INT, *[_LONG] * 7),
    "layer_norm": (*[_POINTER] * 4, _INT, _LONG, _LONG, _FLOAT),
    "quantize": (*[_POINTER] * 5, _LONG, _LONG),
    "dequantize": (*[_POINTER] * 4, _INT, _LONG, _LONG),
    "run_blocks": (_POINTER, _LONG, *[_POINTER] * 3, _LONG, _LONG, _FLOAT),
    "pack_floats": (_POINTER, _POINTER, _LONG, _LONG),
    "multiply_floats": (_POINTER, _LONG, *[_POINTER] * 3, _INT, _POINTER, *[_LONG] * 3),
    "pack_int8": (_POINTER, _POINTER, _LONG, _LONG),
    "multiply_int8": (_POINTER, _LONG, *[_POINTER] * 7, _INT, _POINTER, *[_LONG] * 3),
    "sum_squares": (_POINTER, _POINTER, _LONG, _POINTER),
    "update_rows": (*[_POINTER] * 5, _LONG, _LONG, *[_FLOAT] * 6),
    "request_amx": (_POINTER,),
    "pack": (_POINTER, _INT, _INT, _LONG, _LONG, _LONG, _POINTER),
    "attend_heads": (
        *(*[_POINTER] * 4, *[_LONG] * 8, _POINTER, *[_LONG] * 3, _POINTER, _POINTER, _LONG),
        *(_POINTER, _POINTER, _LONG, _INT, _FLOAT),
    ),
    "attend_heads_backward": (*[_POINTER] * 9, *[_LONG] * 4, _POINTER, _POINTER, _LONG, _FLOAT),
    "multiply": (*_FACTOR, *[_POINTER] * 3, _INT, *[_POINTER] * 3, _INT, *[_LONG] * 4, _POINTER, _POINTER),
}


def is_compiled() -> bool:
    """Whether the passes are there; compiles them at the first call."""
    return _library() is not None


def explain() -> str:
    """Whether the passes are compiled on this machine, for the user."""
    if is_compiled():
        return "compiled for this processor; they speed up training and inference"
    return "not compiled: no working C compiler (cc with OpenMP) was found; with one, training and inference are faster"


def new_floats(*shape: int) -> Tensor:
    """Memory for what a compiled function writes: float32 on the CPU, whatever torch's defaults are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def in_rows(matrix: Tensor) -> Tensor:
    """``matrix`` in float32, with the numbers of a row next to each other; rows may lie apart."""
    matrix = matrix.float()
    return matrix if matrix.stride(1) == 1 else matrix.contiguous()


def call(name: str, *arguments: Tensor | float | None) -> None:
    """Call a compiled function. A tensor is passed as the address of its numbers, and None as NULL.

    Nothing is checked: the caller guarantees number formats, shapes and contiguity.
    """
    library = _library()
    assert library is not None, "call is_compiled() first"
    getattr(library, name)(*[each.data_ptr() if isinstance(each, Tensor) else each for each in arguments])


@cache
def _library() -> ctypes.CDLL | None:
    """The compiled file; None where it cannot be compiled or loaded."""
    with _LOCK:  # one thread compiles, and the others find its file
        try:
            return _load_from_cache()
        except _CompilerError:
            return None
        except (BertkitError, OSError):  # a home that cannot be written to
            return _load_from_temporary()


_LOCK = threading.Lock()


class _CompilerError(Exception):
    """The compiler is missing, failed or took too long."""


def _load_from_cache() -> ctypes.CDLL:
    folder = user_cache()
    if folder is None:
        raise FileNotFoundError("this user has no home")
    path = folder / f"fused-{_fingerprint()}.so"
    if not _is_intact(path):
        make_folder(folder)
        with exclusive_lock(folder / "compile.lock", wait=True):  # one process compiles, and the others find its file
            if not _is_intact(path):
                write_file(path, _compile)
    return _load(path)


def _is_intact(path: Path) -> bool:
    """Whether the file is there, with its SHA-256 at its end: to load a shortened one ends the process."""
    content = path.read_bytes() if path.exists() else b""
    return content[-_DIGEST_BYTES:] == hashlib.sha256(content[:-_DIGEST_BYTES]).digest()


def _load_from_temporary() -> ctypes.CDLL | None:
    """Compiled for this process only. A loaded file is no longer needed in its folder."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fused.so"
            _compile(path)
            return _load(path)
    except (OSError, _CompilerError):
        return None


def _compile(path: Path) -> None:
    """Compile the C files in parallel and link them into ``path``; raises OSError if the result cannot be loaded."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as threads:
        objects = [str(Path(folder) / f"{number}.o") for number in range(len(_SOURCES))]
        commands = [
            (*_FLAGS, "-c", str(_FOLDER / name), "-o", file) for name, file in zip(_SOURCES, objects, strict=True)
        ]
        list(threads.map(_run_compiler, commands))
        _run_compiler((*objects, *_LINK_FLAGS, "-o", str(path)))
    _load(path)
    with path.open("ab") as file:  # which a loader does not read
        file.write(hashlib.sha256(path.read_bytes()).digest())


def _run_compiler(arguments: Sequence[str]) -> None:
    try:
        subprocess.run((_COMPILER, *arguments), check=True, capture_output=True, timeout=_MOST_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise _CompilerError(str(error)) from error


def _load(path: Path) -> ctypes.CDLL:
    library = _open(path)
    for name, arguments in _SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise OSError(str(error)) from error
        function.argtypes, function.restype = arguments, None
    return library


def _open(path: Path) -> ctypes.CDLL:
    """Load the library; where the file system forbids it (``noexec``, as /tmp of many containers), a copy in memory."""
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        if sys.platform != "linux" or not hasattr(os, "memfd_create"):  # some Pythons for Linux are built without it
            raise
        # Never closed: the loader knows the library by this name, and would return it for another of the same number.
        copy = os.memfd_create(path.name)
        with os.fdopen(copy, "wb", closefd=False) as file:
            file.write(path.read_bytes())
        return ctypes.CDLL(f"/proc/self/fd/{copy}")


def _fingerprint() -> str:
    """A hash of everything that decides what is compiled: another processor or compiler makes a file of its own."""
    processor: list[str] = []
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            processor = sorted({line for line in file if line.startswith(_PROCESSOR)})
    except OSError:
        pass
    files = [(_FOLDER / name).read_text(encoding="utf-8") for name in (*_HEADERS, *_SOURCES)]
    content = [*files, *_FLAGS, *_LINK_FLAGS, *processor, _identify_compiler()]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]


def _identify_compiler() -> str:
    """Path, size and time of the compiler's program, which change when it is replaced; empty without one."""
    found = shutil.which(_COMPILER)
    if found is None:
        return ""
    program = Path(found).resolve()
    facts = program.stat()
    return f"{program} {facts.st_size} {facts.st_mtime_ns}"
