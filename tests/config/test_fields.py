from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from bertkit.config.records import from_plain
from bertkit.config.settings import apply, parse_settings
from bertkit.errors import BertkitError


@dataclass(frozen=True, kw_only=True)
class Named:
    kind: ClassVar[str] = "named"

    size: int = 1


def test_what_belongs_to_the_class_is_no_setting() -> None:
    with pytest.raises(BertkitError, match=r"unknown key kind\.$"):
        apply(Named(), parse_settings(["kind=x"]))
    with pytest.raises(BertkitError, match=r"unknown key kind\."):
        from_plain(Named, {"kind": "x"}, source="run.json")
