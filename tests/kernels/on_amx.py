"""What tests of the kernels for AMX share."""

from __future__ import annotations

import pytest
from torch import Tensor

from bertkit.kernels import amx

needs_amx = pytest.mark.skipif(not amx.is_available(), reason="no AMX on this machine")


def exact(left: Tensor, right: Tensor) -> Tensor:
    """The product of two matrices rounded to bfloat16, in float64."""
    return left.bfloat16().double() @ right.bfloat16().double()
