"""Floating-point operations (FLOPs) of a training step, and the peak speed of a device.

Model FLOP/s are the necessary operations of a step divided by its seconds. Model FLOP utilisation (MFU; Chowdhery et
al. 2022, PaLM, appendix B) is model FLOP/s divided by the peak of all devices together in the number format used.
"""

from __future__ import annotations

import torch

from bertkit.batch import Batch
from bertkit.machine.precision import Precision, measure_matmul_speed
from bertkit.model import Model

_PEAKS = {
    "B200": 2250e12,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L40": 181e12,
    "L4": 121e12,
}
"""FLOP/s of dense bfloat16 products in NVIDIA's data sheets. A name comes after the longer names that contain it."""


def count_flops(model: Model, batch: Batch) -> int:
    """Necessary floating-point operations of a training step on ``batch``, backward pass included; 0 if the encoder
    does not count its own.

    Every multiplication comes with an addition, and the backward pass, which a frozen encoder lacks, has two products
    for each one of the forward pass. Padding, recomputation and operations that are no matrix products do not count,
    whether they are computed or not.
    """
    macs = model.count_macs(batch)
    if macs is None:
        return 0
    encoder, heads = macs
    is_frozen = not any(each.requires_grad for each in model.encoder.parameters())
    return 2 * (encoder if is_frozen else 3 * encoder) + 2 * 3 * heads


def peak_flops(device: torch.device, precision: Precision) -> float | None:
    """FLOP/s that matrix products in ``precision`` can reach; None if unknown.

    On a CPU this is the speed of one large product, measured once per process; on a GPU the number of
    its data sheet, which is listed here for bfloat16 only.
    """
    if device.type == "cpu":
        return measure_matmul_speed(device)[precision] * 1e9
    if device.type != "cuda" or precision != "bfloat16":
        return None
    return _find_peak(torch.cuda.get_device_name(device))


def _find_peak(name: str) -> float | None:
    """FLOP/s of a GPU by the words of its name: an "RTX A1000" is no A100. None for a part of one (MIG)."""
    words = f" {name.replace('-', ' ')} "
    if " MIG " in words:
        return None
    return next((peak for known, peak in _PEAKS.items() if f" {known} " in words), None)
