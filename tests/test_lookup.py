"""Names are files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bertkit import lookup
from bertkit.contracts import Objective, PretrainingObjective
from bertkit.errors import BertkitError
from bertkit.lookup import find, find_class, list_modules, load_module, names_from_a_file, values


def test_a_package_lists_its_public_modules() -> None:
    assert {"sequence_classification", "mlm", "nsp", "regression"} <= set(list_modules("objectives"))
    assert not [name for name in list_modules("tasks") if name.startswith("_")]


def test_a_loaded_module_is_found_without_listing_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pre-training looks its objectives up for every batch. A private module is loaded too, and is no name."""
    module = load_module("objectives", "mlm")
    monkeypatch.setattr(lookup, "list_modules", lambda package: [])
    assert load_module("objectives", "mlm") is module
    with pytest.raises(BertkitError, match=r'no objective named "_vocabulary_head"'):
        load_module("objectives", "_vocabulary_head")


def test_values_of_the_users_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_of_mine").mkdir()
    (tmp_path / "lab_of_mine" / "irony.py").write_text("irony = 13\ncount = 7\nother = 'seven'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find("tasks", "lab_of_mine.irony:irony", int) == 13
    assert find("tasks", "lab_of_mine.irony", int) == 13
    with pytest.raises(BertkitError, match=r'no int named "other"\. There are: lab_of_mine\.irony:irony, lab_of_'):
        find("tasks", "lab_of_mine.irony:other", int)


def test_a_name_without_a_value_is_that_of_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_with").mkdir()
    (tmp_path / "lab_with" / "entailment.py").write_text("entail = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BertkitError, match=r'no int named "entailment"\. There are: lab_with\.entailment:entail\.'):
        find("tasks", "lab_with.entailment", int)


def test_a_class_with_another_base_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab_of_order").mkdir()
    (tmp_path / "lab_of_order" / "sop.py").write_text(
        "from bertkit.contracts import Objective\nclass SentenceOrder(Objective):\n    label = 'sop'\n"
    )
    (tmp_path / "lab_of_order" / "empty.py").write_text("from bertkit.contracts import Objective\n")
    monkeypatch.syspath_prepend(tmp_path)
    message = r"sop\.py defines SentenceOrder; it must define one class that derives from PretrainingObjective"
    with pytest.raises(BertkitError, match=message):
        find_class("objectives", "lab_of_order.sop", PretrainingObjective)
    with pytest.raises(BertkitError, match=r"empty\.py defines no class; it must define one class"):
        find_class("objectives", "lab_of_order.empty", PretrainingObjective)


@pytest.mark.parametrize("name", ["..", "../mlm", ".mlm", "a..b", "a.b/c", "my lab.x", "a.\u00b2"])
def test_a_name_that_no_module_can_have_is_refused(name: str) -> None:
    with pytest.raises(BertkitError, match=r"is not the name of a Python module|no objective named"):
        load_module("objectives", name)


def test_an_unknown_name_lists_the_package() -> None:
    known = values("objectives", type(Objective))
    assert "mlm:MaskedLanguageModel" in known
    with pytest.raises(BertkitError, match=r"There are: .*mlm"):
        find("objectives", "mln:MaskedLanguageModel", type(Objective))


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is made when ``foreign_lab.bag`` is imported."""
    marker = tmp_path / "imported"
    (tmp_path / "foreign_lab").mkdir()
    (tmp_path / "foreign_lab" / "bag.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(lookup, "_named_by_the_user", set())
    for name in ("foreign_lab", "foreign_lab.bag"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return marker


def test_a_module_that_a_file_names_is_not_imported(foreign: Path) -> None:
    with names_from_a_file(), pytest.raises(BertkitError, match=r"foreign_lab\.bag.*BERTKIT_TRUST=foreign_lab"):
        load_module("encoders", "foreign_lab.bag")
    assert not foreign.exists()


def test_a_module_that_a_file_names_is_imported_where_the_user_trusts_it(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTKIT_TRUST", "other,foreign_lab")
    with names_from_a_file():
        load_module("encoders", "foreign_lab.bag")
    assert foreign.exists()


def test_a_file_may_name_modules_of_bertkit() -> None:
    """As the record of a task whose class was added to the package."""
    with names_from_a_file():
        assert load_module("tasks", "bertkit.tasks.glue").__name__ == "bertkit.tasks.glue"


def test_what_the_user_named_may_be_named_by_a_file_later(foreign: Path) -> None:
    load_module("encoders", "foreign_lab.bag")
    sys.modules.pop("foreign_lab.bag")
    foreign.unlink()
    with names_from_a_file():
        load_module("encoders", "foreign_lab.bag")
    assert foreign.exists()


def test_a_command_for_files_with_modules_of_the_user_begins_with_the_trust_in_them(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BERTKIT_TRUST", raising=False)
    assert lookup.spell_trust() == ""
    load_module("encoders", "foreign_lab.bag")
    assert lookup.spell_trust() == "BERTKIT_TRUST=foreign_lab "
    monkeypatch.setenv("BERTKIT_TRUST", "other,foreign_lab")
    assert lookup.spell_trust() == "BERTKIT_TRUST=foreign_lab,other "
