"""The compiled passes of ``fused.c``: elementwise work of a training step in one sweep over memory.

torch makes one sweep per operation, so dropout, residual and LayerNorm of a sub-layer take ten. Where bfloat16 products
are fast (AMX), these sweeps are most of a step. The C compiler of the machine (``cc``) compiles the file once, in a
second, into the user's cache folder. Without a compiler, in float32 and on other devices torch computes the same, with
the same dropout masks and in bfloat16 another last digit.

Letters: N entries, L tokens, H hidden width, P rows of probabilities (heads of all examples), Q queries, T keys, M
labels, V vocabulary.
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.errors import BertkitError
from bertkit.nn.cpu_kernels import DropMask
from bertkit.nn.packing import PackedRows
from bertkit.storage.atomic import make_folder, write_file
from bertkit.storage.user_cache import user_cache

_SOURCE = Path(__file__).with_name("fused.c")
_COMMAND = (
    *("cc", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math"),
    *(str(_SOURCE), "-lm", "-o"),
)
_PROCESSOR = ("model name", "flags", "CPU implementer", "CPU part", "Features")
"""The lines of /proc/cpuinfo that ``-march=native`` depends on."""

_BLOCK = 64
"""Rows over which one partial sum of a LayerNorm's gradients goes. Fixed, so that threads change no sum."""


def applies(states: Tensor) -> bool:
    """Whether the passes can be used for ``states``: bfloat16 on a CPU, and the file was compiled."""
    return states.dtype == torch.bfloat16 and states.device.type == "cpu" and _library() is not None


def explain() -> str:
    """Whether the passes are compiled on this machine, for the user."""
    if _library() is not None:
        return "compiled for this processor; they speed up training in bfloat16"
    return "not compiled, because there is no C compiler (cc with OpenMP); training in bfloat16 is slower without"


def dropout(states: Float[Tensor, "*N"], mask: DropMask) -> Float[Tensor, "*N"]:
    """``states`` times the scale where they are kept, and 0 elsewhere."""
    states = states.contiguous()
    dropped = torch.empty_like(states)
    _call("dropout", states, dropped, states.numel(), mask.start, mask.lowest, mask.scale)
    return dropped


def softmax_dropout(
    scores: Float[Tensor, "P Q T"], allowed: Bool[Tensor, "#B #Q T"] | None, mask: DropMask | None
) -> tuple[Float[Tensor, "P Q T"], Float[Tensor, "P Q T"]]:
    """The softmax of each row over its allowed entries, and the same with dropped entries, not scaled."""
    maps, queries, width = scores.shape
    probabilities = torch.empty_like(scores)
    dropped = probabilities if mask is None else torch.empty_like(scores)
    mask_shape = (1, 1) if allowed is None else allowed.shape[:2]
    heads = maps if allowed is None else maps // allowed.shape[0]
    start, lowest = (0, 0) if mask is None else (mask.start, mask.lowest)
    _call(
        *("softmax_dropout", scores, None if allowed is None else allowed.contiguous(), probabilities),
        *(None if mask is None else dropped, maps * queries, width, heads, queries, *mask_shape, start, lowest),
    )
    return probabilities, dropped


def softmax_dropout_backward_(
    gradient: Float[Tensor, "P Q T"], probabilities: Float[Tensor, "P Q T"], dropped: Float[Tensor, "P Q T"]
) -> Float[Tensor, "P Q T"]:
    """Turn the gradient of the dropped probabilities into that of the scores, in place."""
    maps, queries, width = gradient.shape
    _call("softmax_dropout_backward", gradient, probabilities, dropped, maps * queries, width)
    return gradient


def split_heads(
    tokens: Float[Tensor, "L W"], layout: PackedRows, parts: int, heads: int
) -> Float[Tensor, "{parts} P T D"]:
    """The lists that stand side by side in ``tokens``, as heads of padded rows; entries without a token are 0."""
    size = tokens.shape[1] // (parts * heads)
    split = tokens.new_empty(parts, layout.rows * heads, layout.width, size)
    _call("split_heads", tokens.contiguous(), layout.indices, split, len(tokens), *_shape(layout, parts, heads, size))
    return split


def merge_heads(heads_of_parts: Float[Tensor, "K P T D"], layout: PackedRows, heads: int) -> Float[Tensor, "L W"]:
    """The inverse of ``split_heads``."""
    parts, _, _, size = heads_of_parts.shape
    length = layout.rows * layout.width if layout.indices is None else len(layout.indices)
    tokens = heads_of_parts.new_empty(length, parts * heads * size)
    arguments = (heads_of_parts.contiguous(), layout.indices, tokens, length, *_shape(layout, parts, heads, size))
    _call("merge_heads", *arguments)
    return tokens


def _shape(layout: PackedRows, parts: int, heads: int, size: int) -> tuple[int, ...]:
    return layout.rows, layout.width, parts, heads, size


def log_sum_exp(logits: Float[Tensor, "M V"]) -> Float[Tensor, " M"]:
    """The logarithm of the sum of the exponentials of each row, in float32."""
    sums = torch.empty(len(logits))
    _call("log_sum_exp", logits, sums, *logits.shape)
    return sums


def cross_entropy_backward(
    logits: Float[Tensor, "N V"], labels: Int[Tensor, " M"], sums: Float[Tensor, " M"], scale: float
) -> Float[Tensor, "N V"]:
    """``scale`` times the gradient of the summed cross-entropy of the first M rows; ``sums`` are of ``log_sum_exp``."""
    gradient = torch.empty_like(logits)
    gradient[len(labels) :] = 0
    _call("cross_entropy_backward", logits, labels, sums, gradient, len(labels), logits.shape[1], scale)
    return gradient


class NormedSum(NamedTuple):
    """What ``residual_norm`` keeps for its backward pass: the sum, and mean and 1 / deviation of each token."""

    sums: Float[Tensor, "L H"]
    means: Float[Tensor, " L"]
    inverses: Float[Tensor, " L"]


def residual_norm(
    states: Float[Tensor, "L H"],
    update: Float[Tensor, "L H"],
    weight: Float[Tensor, " H"],
    bias: Float[Tensor, " H"],
    eps: float,
    mask: DropMask | None,
) -> tuple[Float[Tensor, "L H"], NormedSum]:
    """``LayerNorm(states + dropout(update))`` for float32 ``states`` and a bfloat16 ``update``."""
    length, width = states.shape
    output = torch.empty_like(states)
    kept = NormedSum(torch.empty_like(states), torch.empty(length), torch.empty(length))
    _call(
        *("residual_norm", states, update, weight, bias, kept.sums, output, kept.means, kept.inverses),
        *(length, width, eps, *_drop_arguments(mask)),
    )
    return output, kept


def residual_norm_backward(
    gradient: Float[Tensor, "L H"], kept: NormedSum, weight: Float[Tensor, " H"], mask: DropMask | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of states, update, weight and bias of ``residual_norm``."""
    length, width = gradient.shape
    gradient = gradient.contiguous()
    to_states, to_update = torch.empty_like(gradient), torch.empty_like(gradient, dtype=torch.bfloat16)
    partial = torch.empty(2, -(-length // _BLOCK), width)
    _call(
        *("residual_norm_backward", gradient, kept.sums, kept.means, kept.inverses, weight, to_states, to_update),
        *(partial[0], partial[1], length, width, _BLOCK, *_drop_arguments(mask)),
    )
    return to_states, to_update, *partial.sum(dim=1)


def _drop_arguments(mask: DropMask | None) -> tuple[int, int, int, float]:
    return (0, 0, 0, 1.0) if mask is None else (1, mask.start, mask.lowest, mask.scale)


def _call(name: str, *arguments: Tensor | float | None) -> None:
    """Call a function of ``fused.c``. Integers are int64 or int, floats float, tensors and None pointers."""
    library = _library()
    assert library is not None, "applies() was not asked"
    getattr(library, name)(*(each.data_ptr() if isinstance(each, Tensor) else each for each in arguments))


_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
_DROP = (_INT, _LONG, _INT, _FLOAT)
_SIGNATURES = {
    "dropout": (_POINTER, _POINTER, _LONG, _LONG, _INT, _FLOAT),
    "split_heads": (*[_POINTER] * 3, *[_LONG] * 6),
    "merge_heads": (*[_POINTER] * 3, *[_LONG] * 6),
    "softmax_dropout": (*[_POINTER] * 4, *[_LONG] * 7, _INT),
    "softmax_dropout_backward": (_POINTER, _POINTER, _POINTER, _LONG, _LONG),
    "log_sum_exp": (_POINTER, _POINTER, _LONG, _LONG),
    "cross_entropy_backward": (*[_POINTER] * 4, _LONG, _LONG, _FLOAT),
    "residual_norm": (*[_POINTER] * 8, _LONG, _LONG, _FLOAT, *_DROP),
    "residual_norm_backward": (*[_POINTER] * 9, _LONG, _LONG, _LONG, *_DROP),
}


@cache
def _library() -> ctypes.CDLL | None:
    """The compiled file; None where it cannot be compiled or loaded."""
    folder = user_cache()
    if folder is None:
        return _load_from_temporary()
    path = folder / f"fused-{_fingerprint()}.so"
    try:
        if not path.exists():
            make_folder(folder)
            write_file(path, _compile)
        return _load(path)
    except (BertkitError, OSError):  # a home that cannot be written to, or whose programs cannot be run
        return _load_from_temporary()


def _load_from_temporary() -> ctypes.CDLL | None:
    """Compiled for this process only; a loaded file may be deleted."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fused.so"
            _compile(path)
            return _load(path)
    except OSError:
        return None


def _compile(path: Path) -> None:
    try:
        subprocess.run((*_COMMAND, str(path)), check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        raise OSError(error.stderr.decode(errors="replace")) from error


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, None
    return library


def _fingerprint() -> str:
    """A hash of everything that decides what is compiled, so that another processor compiles a file of its own."""
    processor: list[str] = []
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            processor = sorted({line for line in file if line.startswith(_PROCESSOR)})
    except OSError:
        pass
    content = (_SOURCE.read_text(encoding="utf-8"), *_COMMAND[:8], *processor)
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:16]
