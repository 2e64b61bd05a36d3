"""What a call costs where users run it, for the tests that bound it."""

from __future__ import annotations

import time
from collections.abc import Callable

import jaxtyping
import pytest


def processor_seconds(call: Callable[[], object]) -> float:
    """Without the checks of annotations, which under test cost several times the work itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        begin = time.process_time()
        call()
        return time.process_time() - begin
