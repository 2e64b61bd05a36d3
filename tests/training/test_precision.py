"""The choice of a number format."""

from __future__ import annotations

import pytest
import torch

from bertkit.training import precision


@pytest.mark.parametrize(("speedup", "wanted"), [(0.4, "float32"), (1.1, "float32"), (3.0, "bfloat16")])
def test_the_cpu_takes_bfloat16_only_where_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, speedup: float, wanted: str
) -> None:
    monkeypatch.setattr(precision, "bfloat16_speedup", lambda: speedup)
    assert precision.choose_precision(torch.device("cpu")) == wanted


def test_the_speedup_is_measured() -> None:
    assert precision.bfloat16_speedup(size=64) > 0


@pytest.mark.parametrize(("name", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_autocast_changes_products_and_not_parameters(name: precision.Precision, dtype: torch.dtype) -> None:
    layer = torch.nn.Linear(7, 13)
    with precision.autocast(torch.device("cpu"), name):
        assert layer(torch.ones(3, 7)).dtype == dtype
    assert layer.weight.dtype == torch.float32
