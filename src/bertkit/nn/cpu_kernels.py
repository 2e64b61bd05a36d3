"""When the passes written by hand for CPU training apply."""

from __future__ import annotations

import torch
from torch import Tensor


def trains_on_cpu(states: Tensor) -> bool:
    """On a CPU, with a gradient to come, and not while torch.compile or an exporter is tracing."""
    return states.device.type == "cpu" and states.requires_grad and not torch.compiler.is_compiling()
