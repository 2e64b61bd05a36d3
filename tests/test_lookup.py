"""Names are files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.contracts import Objective
from bertkit.errors import BertkitError
from bertkit.lookup import find, list_modules, values


def test_a_shelf_lists_its_public_files() -> None:
    assert {"sequence_classification", "mlm", "nsp", "regression"} <= set(list_modules("objectives"))
    assert not [name for name in list_modules("tasks") if name.startswith("_")]


def test_values_of_the_users_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_of_mine").mkdir()
    (tmp_path / "lab_of_mine" / "irony.py").write_text("irony = 13\nother = 'seven'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find("tasks", "lab_of_mine.irony:irony", int) == 13
    assert find("tasks", "lab_of_mine.irony", int) == 13
    with pytest.raises(BertkitError, match='no int named "other"'):
        find("tasks", "lab_of_mine.irony:other", int)


def test_an_unknown_name_lists_the_shelf() -> None:
    known = values("objectives", type(Objective))
    assert "mlm:MaskedLanguageModel" in known
    with pytest.raises(BertkitError, match=r"There are: .*mlm"):
        find("objectives", "mln:MaskedLanguageModel", type(Objective))
