"""The arithmetic of a pre-training step: floating-point operations that its losses need, and the device's most.

Model FLOP/s are the useful operations of a step over its seconds; model FLOP utilisation (MFU: Chowdhery et al. 2022,
PaLM, appendix B) is their share of the peak of the number format on all devices together.
"""

from __future__ import annotations

import torch

from bertkit.contracts import IGNORE, Batch
from bertkit.encoders.bert import BertConfig
from bertkit.training.precision import Precision, measure_products

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


def count_flops(config: BertConfig, batch: Batch) -> int:
    """Useful floating-point operations of a training step on ``batch``, its backward pass included.

    With a row of n tokens, m of them masked, r = m + 1 read in the last layer (m without next sentences), hidden width
    H, intermediate width I, vocabulary V and L layers, a row has these multiplications, each with an addition::

        (L - 1) * n * (4 H^2 + 2 H I + 2 n H)             layers below the last
        + 2 n H^2 + r * (2 H^2 + 2 H I + 2 n H)           the last: keys and values; what is read
        + m * (H^2 + H V) + H^2 + 2 H                     masked words; pooler and next sentence

    In a causal encoder m is n - 1, a token reads itself and those before it, and no H^2 stands before the vocabulary.

    The backward pass has two products for each one forward, so the sum is taken 3 times 2 times. Padding and whatever
    else need not be computed does not count, computed or not; neither does what is no product, nor recomputation.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    lengths = batch.attention_mask.sum(dim=1)
    masked = (batch.labels["causal" if config.causal else "mlm"] != IGNORE).sum(dim=1)
    pairs = int("nsp" in batch.labels)
    read = masked + pairs
    tokens, squares, reading = int(lengths.sum()), int((lengths**2).sum()), int((read * lengths).sum())
    if config.causal:
        squares, reading = (squares + tokens) // 2, reading // 2
    token = 2 * hidden * hidden + 2 * hidden * inner
    below = tokens * (token + 2 * hidden * hidden) + 2 * hidden * squares
    last = tokens * 2 * hidden * hidden + int(read.sum()) * token + 2 * hidden * reading
    words = int(masked.sum()) * hidden * (config.vocab_size + (0 if config.causal else hidden))
    sentences = pairs * len(batch) * hidden * (hidden + 2)
    return 3 * 2 * ((config.num_layers - 1) * below + last + words + sentences)


def peak_flops(device: torch.device, precision: Precision) -> float | None:
    """FLOP/s that matrix products in ``precision`` can reach; None where it is not known.

    On a CPU the speed of one large product, measured once a process in some 0.3 s; on a GPU the figure of its data
    sheet, which is there for bfloat16 alone.
    """
    if device.type == "cpu":
        return measure_products(device)[precision] * 1e9
    if device.type != "cuda" or precision != "bfloat16":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for known, peak in _PEAKS.items() if known in name), None)
