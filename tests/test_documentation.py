"""Commands on the pages are commands of bertkit, and every page is on the site."""

from __future__ import annotations

import csv
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import median

import pytest

from bertkit.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
WRITTEN_BY_HAND = [page for page in PAGES if page.parent != DOCS / "reference"]
SHELL = {"|", ">", ">>", "<", "2>", "&&", "&", ";"}
NOT_ON_THE_MENU = {"reference", "results"}
"""Folders with an index of their own."""


def commands_of(page: Path) -> Iterator[str]:
    """The command lines of all console blocks, with their continuations."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        joined = re.sub(r"\\\n>?\s*", "", block)
        yield from re.findall(r"^\$ (.*)", joined, re.MULTILINE)


def bertkit_words(line: str) -> Iterator[list[str]]:
    """The arguments of every call of bertkit in a command line."""
    words: list[str] = []
    for word in [*shlex.split(line, comments=True), ";"]:
        if word not in SHELL:
            words.append(word)
            continue
        while words and re.match(r"[A-Z_]+=", words[0]):
            del words[0]
        if words and words[0] == "bertkit":
            yield words[1:]
        words = []


@pytest.mark.parametrize("page", WRITTEN_BY_HAND, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_spelled_as_bertkit_reads_them(page: Path) -> None:
    for line in commands_of(page):
        for words in bertkit_words(line):
            app.parse_args(words, exit_on_error=False, print_error=False, verbose=False)


def test_a_misspelt_option_on_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ X=1 bertkit fill runs/mini \\\n>   'a' --top 3 | head   # a note\n```\n")
    (line,) = commands_of(page)
    (words,) = bertkit_words(line)
    assert words == ["fill", "runs/mini", "a", "--top", "3"]
    with pytest.raises(Exception, match="--top"):
        app.parse_args(words, exit_on_error=False, print_error=False, verbose=False)


def test_every_page_is_on_the_menu_of_the_site() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"'([\w/-]+\.md)'", repr(site["project"]["nav"])))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name not in NOT_ON_THE_MENU}
    indexes = {f"{folder}/README.md" for folder in NOT_ON_THE_MENU}
    assert listed == pages | indexes


@pytest.mark.parametrize("folder", sorted(NOT_ON_THE_MENU))
def test_an_index_lists_every_page_of_its_folder(folder: str) -> None:
    index = (DOCS / folder / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in sorted((DOCS / folder).glob("*.md")) if f"({page.name})" not in index] == [
        "README.md"
    ]


def test_the_figures_of_the_quickstart_are_those_of_its_runs() -> None:
    page = (DOCS / "results" / "quickstart.md").read_text(encoding="utf-8")
    table = (DOCS / "results" / "quickstart-runs.csv").read_text(encoding="utf-8")
    runs = list(csv.DictReader(table.splitlines()))
    for chip in {run["chip"] for run in runs}:
        (row,) = re.findall(rf"^\| {chip} \| .*$", page, re.MULTILINE)
        assert row == summarize([run for run in runs if run["chip"] == chip])
    accuracy, gained, words = (show_range(runs, name) for name in ("pretrained", "gained", "bag_of_words"))
    for place in (page, (DOCS / "results" / "README.md").read_text(encoding="utf-8")):
        assert f"{accuracy} % in {len(runs)} runs, {gained} points above" in place
    assert f"`make quickstart`, {len(runs)} runs" in (readme := (ROOT / "README.md").read_text(encoding="utf-8"))
    assert f"| {accuracy} % | a bag of words {words} % |" in readme


def summarize(runs: Sequence[Mapping[str, str]]) -> str:
    """The row of the page for the runs of one chip."""
    counts = [show_range(runs, name, digits=0) for name in ("steps", "training_texts")]
    shares = [show_range(runs, name) for name in ("bag_of_words", "initial_weights")]
    medians = [
        f"{show_range(runs, name)}, **{median(Decimal(run[name]) for run in runs):.1f}**"
        for name in ("pretrained", "gained")
    ]
    return f"| {' | '.join([runs[0]['chip'], str(len(runs)), *counts, *shares, *medians])} |"


def show_range(runs: Sequence[Mapping[str, str]], name: str, digits: int = 1) -> str:
    found = [Decimal(run[name]) for run in runs]
    return f"{min(found):,.{digits}f} to {max(found):,.{digits}f}"
