"""The choice of a device."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from bertkit.errors import BertkitError
from bertkit.machine import device


def test_the_device_is_chosen_within_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(device.DEVICE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device.default_device().type == "cuda"
    assert device.explain_device() == "the first GPU"
    with device.use_device("cpu"):
        assert os.environ[device.DEVICE] == "cpu"  # processes that are started here inherit it
        assert device.device_record() == {"device": "cpu", "name": "CPU", "reason": "cpu was chosen"}
        with device.use_device("auto"):
            assert device.default_device().type == "cpu"
    assert device.DEVICE not in os.environ


def test_the_environment_may_choose_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(device.DEVICE, "cpu")
    assert device.default_device().type == "cpu"
    with device.use_device("cuda"):
        assert device.default_device().type == "cuda"
    assert os.environ[device.DEVICE] == "cpu"
    monkeypatch.setenv(device.DEVICE, "gpu")
    with pytest.raises(BertkitError, match="BERTKIT_DEVICE is gpu; it must be auto, cpu, cuda"):
        device.default_device()


@pytest.mark.parametrize(
    ("build", "visible", "driver", "reason", "remedy"),
    [
        (None, "0", True, "is a build for CPUs", "install a build of PyTorch for your GPU from pytorch.org"),
        ("12.8", "", True, "CUDA_VISIBLE_DEVICES hides every GPU", "unset it"),
        ("12.8", "0", False, "no driver of NVIDIA is loaded", "install the driver"),
        ("12.8", "0", True, "the driver is too old", "install a build of PyTorch for your GPU from pytorch.org"),
    ],
)
def test_a_missing_gpu_is_explained(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    build: str | None,
    visible: str,
    driver: bool,
    reason: str,
    remedy: str,
) -> None:
    def fail() -> None:
        raise RuntimeError("the driver\n is too old.")

    monkeypatch.delenv(device.DEVICE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr(torch.cuda, "init", fail)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(device, "_DRIVER", tmp_path if driver else tmp_path / "absent")
    assert device.default_device().type == "cpu"
    assert reason in device.explain_device()
    message = rf"no GPU can be used: .*{reason}\. Leave out --device cuda, or {remedy}\.$"
    with pytest.raises(BertkitError, match=message):
        device.use_device("cuda").__enter__()
    assert device.DEVICE not in os.environ


def test_a_device_of_pytorch_is_one() -> None:
    with device.use_device(torch.device("cpu")):
        assert device.default_device() == torch.device("cpu")
    with pytest.raises(BertkitError, match=r"^device is cuda:1; it must be"), device.use_device(torch.device("cuda:1")):
        raise AssertionError("another GPU than the first one was accepted")


def test_a_wrong_device_is_blamed_on_where_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(device.DEVICE, raising=False)
    with (
        pytest.raises(BertkitError, match=r"^device is cuda:0; it must be auto, cpu, cuda\."),
        device.use_device("cuda:0"),
    ):
        raise AssertionError("a wrong device was accepted")
    monkeypatch.setenv(device.DEVICE, "gpu")
    with pytest.raises(BertkitError, match="BERTKIT_DEVICE is gpu"):
        device.default_device()


@pytest.mark.parametrize("before", [None, "cuda"])
def test_contexts_of_two_threads_may_end_in_any_order(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv(device.DEVICE, raising=False)
    if before is not None:
        monkeypatch.setenv(device.DEVICE, before)
    second_began, first_ended = threading.Event(), threading.Event()

    def run_second() -> str:
        with device.use_device("cpu"):
            second_began.set()
            assert first_ended.wait(10)
            assert os.environ[device.DEVICE] == "cpu"
            return device.default_device().type

    with ThreadPoolExecutor(1) as threads:
        with device.use_device("cuda"):
            second = threads.submit(run_second)
            assert second_began.wait(10)
            assert device.default_device().type == "cuda"
        first_ended.set()
        assert second.result(10) == "cpu"
    assert os.environ.get(device.DEVICE) == before
