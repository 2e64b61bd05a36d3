"""The classification task made from documentation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.quick_start.docstrings import Document
from bertkit.quick_start.labelling import DocumentSplit, is_heldout, split_documents, write_csv
from bertkit.user_tables.guess import guess

PACKAGES = ("kitchen", "larder", "hall")


def write_documents(package: str, modules: int) -> list[Document]:
    return [
        Document(
            package=package,
            module=f"{package}.m{module}",
            sentences=(
                f"The {package} is named here.",
                f"This is sentence one of room {module}, door {door}, key {len(package)}.",
                f"This is sentence two of room {module}, door {door}, key {len(package)}.",
                "This sentence is the fourth.",
            ),
        )
        for module in range(modules)
        for door in range(3)
    ]


@pytest.fixture
def documents() -> list[Document]:
    return [each for package in PACKAGES for each in write_documents(package, 99)]


@pytest.fixture
def parts(documents: list[Document]) -> DocumentSplit:
    return split_documents(documents)


def test_heldout_modules_are_not_used_in_training(parts: DocumentSplit) -> None:
    read = {each.module for each in parts.unlabelled}
    assert read.isdisjoint(each.module for each in parts.heldout)
    unlabelled = " ".join(each.text for each in parts.unlabelled)
    heldout = " ".join(each.text for each in parts.heldout)
    assert all(each.text in unlabelled and each.text not in heldout for each in parts.train)
    assert all(each.text in heldout and each.text not in unlabelled for each in parts.dev)
    assert not {each.text for each in parts.train} & {each.text for each in parts.dev}


def test_the_split_of_a_module_does_not_depend_on_other_packages(documents: list[Document]) -> None:
    parts = split_documents(documents)
    fewer = split_documents([each for each in documents if each.package != "hall"])
    assert {each.module for each in fewer.heldout} <= {each.module for each in parts.heldout}
    assert 0.1 < len(parts.heldout) / len(documents) < 0.3


def test_texts_do_not_contain_names_of_packages(parts: DocumentSplit) -> None:
    for each in (*parts.train, *parts.dev):
        assert not any(name in each.text for name in PACKAGES)
        assert each.text.count("This is sentence") == 2


def test_the_first_texts_are_balanced_too(parts: DocumentSplit) -> None:
    assert parts.classes == PACKAGES
    for texts in (parts.train, parts.dev, parts.train[: 7 * len(PACKAGES)]):
        assert len(set(Counter(each.package for each in texts).values())) == 1


def test_small_packages_are_used_without_labels(documents: list[Document]) -> None:
    small = write_documents("attic", 3)
    parts = split_documents([*documents, *small])
    assert "attic" not in parts.classes
    assert [each for each in parts.unlabelled if each.package == "attic"] == small


def test_too_little_text_is_an_error() -> None:
    with pytest.raises(BertkitError, match="too little"):
        split_documents(write_documents("kitchen", 99) + write_documents("attic", 2))
    documents = [*write_documents("kitchen", 99), *write_documents("attic", 99)]
    named = [replace(each, sentences=("The kitchen is below the attic.",)) for each in documents]
    with pytest.raises(BertkitError, match="too little"):
        split_documents(named)


def test_tables_can_be_read_as_user_tables(parts: DocumentSplit, tmp_path: Path) -> None:
    write_csv(parts.train, tmp_path / "train.csv")
    write_csv(parts.dev, tmp_path / "dev.csv")
    task = guess(tmp_path / "train.csv", dev=tmp_path / "dev.csv").task
    assert set(task.labels) == set(PACKAGES)
    assert [(each.first, each.label) for each in task.examples("dev")] == [(e.text, e.package) for e in parts.dev]


def test_heldout_modules_are_the_same_everywhere() -> None:
    assert [number for number in range(20) if is_heldout(f"kitchen.m{number}")] == [1, 2, 4, 12, 19]
