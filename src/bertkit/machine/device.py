"""Which device computes: the CPU or a GPU."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import get_args

import torch

from bertkit.errors import usage_error
from bertkit.options.job import Device

DEVICE = "BERTKIT_DEVICE"
"""Environment variable: the device that models run on."""

_DRIVER = Path("/proc/driver/nvidia")
_chosen: ContextVar[Device] = ContextVar("device", default="auto")
_lock = threading.Lock()
_values: dict[object, str | None] = {}
"""Of the environment variable: the user's, and those of all contexts that have not ended, in their order."""

_REMEDY = "install a build of PyTorch for your GPU from pytorch.org"


@contextmanager
def use_device(device: str | torch.device) -> Iterator[None]:
    """Let models run on ``device`` within this context, also in processes that are started there.

    ``auto`` changes nothing. Threads may have different choices; a process that is started while they overlap has the
    last one. Raises a usage error for anything that is no ``Device``.
    """
    if isinstance(device, torch.device):
        device = str(device) if device.index else device.type
    checked = _check_device("device", device)
    if checked == "auto":
        yield
        return
    token = _chosen.set(checked)
    try:
        default_device()  # raises at once where there is no such device
        with _in_environment(checked):
            yield
    finally:
        _chosen.reset(token)


def default_device() -> torch.device:
    """The device that was chosen; else the first CUDA device, or the CPU where there is none."""
    chosen = _chosen_device()
    if chosen == "cuda" and not torch.cuda.is_available():
        reason, remedy = _explain_missing_gpu()
        raise usage_error(f"no GPU can be used: {reason}. Leave out --device cuda, or {remedy}.")
    return torch.device("cuda" if chosen != "cpu" and torch.cuda.is_available() else "cpu")


def explain_device() -> str:
    """The reason for the result of ``default_device``."""
    if _chosen_device() != "auto":
        return f"{_chosen_device()} was chosen"
    return "the first GPU" if torch.cuda.is_available() else f"no GPU is seen: {_explain_missing_gpu()[0]}"


def device_record() -> dict[str, str]:
    """The device and the reason for it, for the record of a run."""
    device = default_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {"device": device.type, "name": name, "reason": explain_device()}


def _chosen_device() -> Device:
    chosen = _chosen.get()
    return chosen if chosen != "auto" else _check_device(DEVICE, os.environ.get(DEVICE) or "auto")


@contextmanager
def _in_environment(device: Device) -> Iterator[None]:
    """Set the environment variable, which processes inherit. Contexts of several threads may end in any order."""
    key = object()
    with _lock:
        _values.setdefault("user", os.environ.get(DEVICE))
        _values[key] = os.environ[DEVICE] = device
    try:
        yield
    finally:
        with _lock:
            del _values[key]
            *_, last = _values.values()
            if last is None:
                os.environ.pop(DEVICE, None)
            else:
                os.environ[DEVICE] = last
            if len(_values) == 1:  # the user may change it before the next context begins
                _values.clear()


def _check_device(name: str, value: str) -> Device:
    """``value`` if it is a device; else a usage error that names the setting."""
    for device in get_args(Device):
        if value == device:
            return device  # type: ignore[no-any-return]
    raise usage_error(f"{name} is {value}; it must be {', '.join(get_args(Device))}.")


def _explain_missing_gpu() -> tuple[str, str]:
    """The reason, and what to do about it."""
    if torch.version.cuda is None and torch.version.hip is None:
        return f"PyTorch {torch.__version__} is a build for CPUs", _REMEDY
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU", "unset it"
    if torch.version.hip is None and not _DRIVER.exists():
        return "no driver of NVIDIA is loaded", "install the driver"
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        return " ".join(str(error).split()).rstrip("."), _REMEDY
    return "PyTorch finds none", _REMEDY
