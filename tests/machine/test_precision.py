"""The choice of a number format by measuring, and autocast."""

from __future__ import annotations

import pytest
import torch

from bertkit.machine import precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("speedup", "expected"), [(0.4, "float32"), (1.1, "float32"), (3.0, "bfloat16")])
def test_a_cpu_uses_bfloat16_only_if_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, speedup: float, expected: str
) -> None:
    speeds = {"float32": 100.0, "bfloat16": 100.0 * speedup}
    monkeypatch.setattr(precision, "measure_matmul_speed", lambda device: speeds)
    assert precision.choose_precision(CPU) == expected
    assert f"{speedup} times as fast" in precision.explain_precision(CPU)


def test_products_are_measured_once() -> None:
    speeds = precision.measure_matmul_speed(CPU)
    assert set(speeds) == {"float32", "bfloat16"}
    assert min(speeds.values()) > 0
    assert precision.measure_matmul_speed(CPU) is speeds


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
