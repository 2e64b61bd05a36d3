from __future__ import annotations

import platform
from pathlib import Path

import pytest

from bertkit.machine.processor import processor_name


def test_the_processor_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processor_name()

    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "open", absent)
    assert processor_name() == (platform.processor() or platform.machine())
