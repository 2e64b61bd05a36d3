"""The choice of a number format by measuring, and autocast."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from bertkit.errors import BertkitError
from bertkit.training import precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("speedup", "expected"), [(0.4, "float32"), (1.1, "float32"), (3.0, "bfloat16")])
def test_a_cpu_uses_bfloat16_only_if_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, speedup: float, expected: str
) -> None:
    speeds = {"float32": 100.0, "bfloat16": 100.0 * speedup}
    monkeypatch.setattr(precision, "measure_matmul_speed", lambda device: speeds)
    assert precision.choose_precision(CPU) == expected
    assert f"{speedup} times as fast" in precision.explain_precision(CPU)


def test_products_are_measured_once_and_matmul_precision_is_restored() -> None:
    before = torch.get_float32_matmul_precision()
    speeds = precision.measure_matmul_speed(CPU)
    assert set(speeds) == {"float32", "float32 medium", "bfloat16"}
    assert min(speeds.values()) > 0
    assert precision.measure_matmul_speed(CPU) is speeds
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(("name", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_autocast_changes_products_and_not_parameters(name: precision.Precision, dtype: torch.dtype) -> None:
    layer = torch.nn.Linear(7, 13)
    with precision.autocast(torch.device("cpu"), name):
        assert layer(torch.ones(3, 7)).dtype == dtype
    assert layer.weight.dtype == torch.float32


def test_measuring_does_not_change_torchs_random_state() -> None:
    before = torch.get_rng_state()
    precision.measure_matmul_speed.__wrapped__(CPU)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_device_is_chosen_within_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(precision.DEVICE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert precision.default_device().type == "cuda"
    assert precision.explain_device() == "the first GPU"
    with precision.use_device("cpu"):
        assert os.environ[precision.DEVICE] == "cpu"  # processes that are started here inherit it
        assert precision.device_record() == {"device": "cpu", "name": "CPU", "reason": "cpu was chosen"}
        with precision.use_device("auto"):
            assert precision.default_device().type == "cpu"
    assert precision.DEVICE not in os.environ


def test_the_environment_may_choose_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv(precision.DEVICE, "cpu")
    assert precision.default_device().type == "cpu"
    with precision.use_device("cuda"):
        assert precision.default_device().type == "cuda"
    assert os.environ[precision.DEVICE] == "cpu"
    monkeypatch.setenv(precision.DEVICE, "gpu")
    with pytest.raises(BertkitError, match="BERTKIT_DEVICE is gpu; it must be auto, cpu, cuda"):
        precision.default_device()


@pytest.mark.parametrize(
    ("build", "visible", "driver", "reason"),
    [
        (None, "0", True, "is a build for CPUs"),
        ("12.8", "", True, "CUDA_VISIBLE_DEVICES hides every GPU"),
        ("12.8", "0", False, "no driver of NVIDIA is loaded"),
        ("12.8", "0", True, "the driver is too old"),
    ],
)
def test_a_missing_gpu_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, build: str | None, visible: str, driver: bool, reason: str
) -> None:
    def fail() -> None:
        raise RuntimeError("the driver\n is too old.")

    monkeypatch.delenv(precision.DEVICE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr(torch.cuda, "init", fail)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(precision, "_DRIVER", tmp_path if driver else tmp_path / "absent")
    assert precision.default_device().type == "cpu"
    assert reason in precision.explain_device()
    with pytest.raises(BertkitError, match=rf"no GPU can be used: .*{reason}\. Leave out --device cuda"):
        precision.use_device("cuda").__enter__()
    assert precision.DEVICE not in os.environ


def test_a_wrong_device_is_blamed_on_where_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(precision.DEVICE, raising=False)
    with (
        pytest.raises(BertkitError, match=r"^device is cuda:0; it must be auto, cpu, cuda\."),
        precision.use_device("cuda:0"),
    ):
        raise AssertionError("a wrong device was accepted")
    monkeypatch.setenv(precision.DEVICE, "gpu")
    with pytest.raises(BertkitError, match="BERTKIT_DEVICE is gpu"):
        precision.default_device()
