"""English prose in the documentation of packages."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from bertkit.quick_start import docstrings
from bertkit.quick_start.docstrings import (
    PROSE_RICH,
    STANDARD_LIBRARY,
    Document,
    harvest,
    installed_packages,
    is_prose,
    list_sources,
    read_prose,
    read_strings,
)

NUMPY_STYLE = """
    Count the leaves of a tree, which may be empty.

    The order of the branches does not matter here.

    Parameters
    ----------
    tree : nested list of float, optional
        The tree that is to be counted.
    deep, wide : bool
        Whether to look below the first branch
        that has been seen.

    Returns
    -------
    int

    See Also
    --------
    plant : Another function.

    Examples
    --------
    It can be called in this way:

    >>> count_leaves([1, [2, 3]])
    3
    It is the output of the example.

    .. math::

        The formula is not a sentence of English.

    .. versionadded:: 1.2
       The keyword is in this version.

    Both are described in the following code::

        The code is not a sentence either.

    The text continues after the code.
    """

GOOGLE_STYLE = """Open the door of the house.

    Args:
        key (str, optional): The key of the door, as it was
            given to the tenant.
        *hands: Who is to turn it.

    Returns:
        The output layer that follows it.

    .. note:: This is a directive.

    It takes :class:`~house.keys.Key` and ``None``, see `the manual <https://example.org>`_, and *never* fails [3]_.
    """

MARKDOWN = """# The Package

A [package](https://example.org) of the **best** kind.

```python
This is not a sentence of the text.
```

- The first point of the list.
- The second point of the list goes on
  in the line below it.

| a | table |
|---|-------|
| This is a | cell of the table. |
"""


def test_prose_of_a_numpy_docstring() -> None:
    assert read_prose(NUMPY_STYLE) == [
        "Count the leaves of a tree, which may be empty.",
        "The order of the branches does not matter here.",
        "The tree that is to be counted.",
        "Whether to look below the first branch that has been seen.",
        "The text continues after the code.",
    ]


def test_prose_of_a_google_docstring_without_its_markup() -> None:
    assert read_prose(GOOGLE_STYLE) == [
        "Open the door of the house.",
        "The key of the door, as it was given to the tenant.",
        "Who is to turn it.",
        "The output layer that follows it.",
        "It takes house.keys.Key and None, see the manual, and never fails.",
    ]


def test_prose_of_a_readme() -> None:
    assert read_prose(MARKDOWN) == [
        "A package of the best kind.",
        "The first point of the list.",
        "The second point of the list goes on in the line below it.",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The default is the last axis of the array.",
        "If None, the array isn't copied (see below).",
        '"Closed" is what the door should be!',
    ],
)
def test_prose_is_recognised(sentence: str) -> None:
    assert is_prose(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Default: None.",
        "the default is the last axis of the array.",
        "The default is the last axis of",
        "x = f(a, b) is y[1:2] in A_1 + {b}.",
        "Warning warning error error failure.",
        "The " + "very " * 60 + "end.",
    ],
)
def test_other_text_is_not_prose(sentence: str) -> None:
    assert not is_prose(sentence)


def test_strings_are_read_in_order_without_running_code(tmp_path: Path) -> None:
    source = tmp_path / "danger.py"
    source.write_text(
        dedent('''
            """The docstring of this module is long enough to be worth reading."""
            raise SystemExit("short")
            TOPICS = {"one": "The constants of a module are read if they are long enough.", "two": b"bytes" * 40}
            def f():
                """The docstring of this function is long enough, too, to be read."""
        '''),
        encoding="utf-8",
    )
    assert [text[:35] for text in read_strings(source)] == [
        "The docstring of this module is lon",
        "The constants of a module are read ",
        "The docstring of this function is l",
    ]


@pytest.mark.parametrize("content", [b"def broken(:", b"\xff\xfe\x00", b"# coding: nonsense\n", b"x = '\x00'"])
def test_files_that_do_not_parse_have_no_strings(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(content)
    assert read_strings(tmp_path / "broken.py") == []


def test_a_string_with_half_a_character_is_left_out(tmp_path: Path) -> None:
    """Tests of encodings have such strings; no file of text can hold them."""
    whole = "A text of more than fifty characters, all of them whole."
    half = "A text of more than fifty characters, one of them half: \\ud800."
    (tmp_path / "m.py").write_text(f'one = "{half}"\ntwo = "{whole}"\n')
    assert read_strings(tmp_path / "m.py") == [whole]


def read_packages(packages: dict[str, Path]) -> list[Document]:
    return [document for found in harvest(list_sources(packages), 2) for document in found]


def sentences(*nouns: str) -> str:
    return " ".join(f"The {noun} is on the table." for noun in nouns)


def write_package(folder: Path) -> Path:
    (folder / "tests").mkdir(parents=True)
    (folder / "b.py").write_text(f'"""{sentences("apple", "pear", "plum")}"""\n', encoding="utf-8")
    (folder / "a.py").write_text(
        f'"""{sentences("apple", "cup")}"""\ndef f():\n    """{sentences("cup", "spoon")}"""\n'
        f'def g():\n    """{sentences("fork", "knife")}"""\n',
        encoding="utf-8",
    )
    (folder / "c.py").write_text(f'"""{sentences("cup", "salt", "oil")}"""\n', encoding="utf-8")
    (folder / "tests" / "test_a.py").write_text(f'"""{sentences("rat", "bat", "cat")}"""\n', encoding="utf-8")
    return folder


def test_sentences_are_unique_and_short_docstrings_are_joined(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "kitchen")
    sources = {each.module: each for each in list_sources({"kitchen": folder})}
    assert set(sources) == {"kitchen", "kitchen.a", "kitchen.b", "kitchen.c"}, "tests are no documentation"
    in_order = harvest([sources[f"kitchen.{name}"] for name in "abc"], 1)
    assert [[each.text for each in found] for found in in_order] == [
        [sentences("apple", "cup", "spoon", "fork", "knife")],
        [],
        [],
    ]
    other_order = harvest([sources[f"kitchen.{name}"] for name in "cba"], 1)
    assert [[each.text for each in found] for found in other_order] == [
        [sentences("cup", "salt", "oil")],
        [sentences("apple", "pear", "plum")],
        [sentences("spoon", "fork", "knife")],
    ]


def test_the_same_packages_give_the_same_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes read how many files at a time."""
    packages = {"kitchen": write_package(tmp_path / "kitchen"), "larder": write_package(tmp_path / "larder")}
    documents = read_packages(packages)
    monkeypatch.setattr(docstrings, "_SOURCES_PER_CALL", 1)
    assert documents == read_packages(packages)
    seen = [sentence for each in documents for sentence in each.sentences]
    assert len(seen) == len(set(seen))
    assert {each.module.partition(".")[0] for each in documents} <= {"kitchen", "larder"}


def test_packages_take_turns_with_those_rich_in_prose_first(tmp_path: Path) -> None:
    packages = {name: write_package(tmp_path / name) for name in ("attic", "numpy", "cellar", "torch")}
    turns = [each.package for each in list_sources(packages)]
    assert turns == ["numpy", "torch"] * 4 + ["attic", "cellar"] * 4


def test_a_broken_link_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.py").symlink_to("/nowhere/b.py")
    assert [each.module for each in list_sources({"own": tmp_path})] == ["own", "own.a"]


def test_this_machine_has_documentation() -> None:
    packages = installed_packages()
    assert list(packages)[: len(PROSE_RICH)] == list(PROSE_RICH), "all of them come with bertkit"
    assert all(folder.is_dir() for folder in packages.values())
    installed = {STANDARD_LIBRARY: packages[STANDARD_LIBRARY] / "json"}
    documents = read_packages(installed)
    assert documents
    assert "decoder" in {each.module.rpartition(".")[2] for each in documents}
