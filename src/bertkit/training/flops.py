"""The arithmetic of a pre-training step: floating-point operations that its losses need, and the device's most.

Model FLOP/s are the useful operations of a step over its seconds; model FLOP utilisation (MFU: Chowdhery et al. 2022,
PaLM, appendix B) is their share of the peak of the number format on all devices together.
"""

from __future__ import annotations

import torch

from bertkit.batch import Batch
from bertkit.model import Model
from bertkit.training.precision import Precision, measure_matmul_speed

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
"""Dense bfloat16 products, FLOP/s, in NVIDIA's data sheets; a name comes after the longer ones that contain it."""


def count_flops(model: Model, batch: Batch) -> int:
    """Useful floating-point operations of a training step on ``batch``, its backward pass included.

    Every multiplication goes with an addition, and the backward pass has two products for each one forward, so what
    the encoder and the objectives count is taken 3 times 2 times. Padding and whatever else need not be computed does
    not count, computed or not; neither does what is no product, nor recomputation.
    """
    return 3 * 2 * model.count_macs(batch)


def peak_flops(device: torch.device, precision: Precision) -> float | None:
    """FLOP/s that matrix products in ``precision`` can reach; None where it is not known.

    On a CPU the speed of one large product, measured once a process in some 0.3 s; on a GPU the figure of its data
    sheet, which is there for bfloat16 alone.
    """
    if device.type == "cpu":
        return measure_matmul_speed(device)[precision] * 1e9
    if device.type != "cuda" or precision != "bfloat16":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for known, peak in _PEAKS.items() if known in name), None)
