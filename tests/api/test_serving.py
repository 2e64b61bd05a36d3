from __future__ import annotations

import sys

import pytest

import bertkit
from bertkit.errors import BertkitError


def test_a_model_is_needed() -> None:
    with pytest.raises(BertkitError, match="models is empty: give at least one"):
        bertkit.serve([])


@pytest.mark.parametrize("library", ["starlette", "httptools"])
def test_a_missing_library_is_one_line_that_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BertkitError, match=rf"serve needs {library}: pip install 'bertkit\[serve\]'"):
        bertkit.serve(["anything"])
