"""The generated pages of docs/reference."""

from __future__ import annotations

from pathlib import Path

from bertkit.cli.reference import INDEX, make_pages, write_pages
from bertkit.options.description import list_options
from bertkit.options.verbs import VERBS

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def read_pages(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_the_pages_are_up_to_date() -> None:
    assert read_pages(REFERENCE) == make_pages(), "run make docs"


def test_every_option_of_every_verb_is_on_its_page() -> None:
    pages = make_pages()
    assert len(pages) == len(VERBS) + 2
    for verb, record in VERBS.items():
        page = pages[f"{verb.replace(' ', '-')}.md"]
        assert page.startswith(f"# {verb}\n")
        assert f"]({verb.replace(' ', '-')}.md)" in pages[INDEX]
        for option in list_options(record):
            assert f"| `{option.name}` " in page, (verb, option.name)


def test_changed_missing_and_stale_pages_are_written_again(tmp_path: Path) -> None:
    write_pages(tmp_path)
    (tmp_path / "fill.md").write_text("old")
    (tmp_path / "tune.md").unlink()
    (tmp_path / "tasks.md").write_text("a verb that no longer exists")
    write_pages(tmp_path)
    assert read_pages(tmp_path) == make_pages()


def test_no_type_needs_an_escape_that_the_site_would_show() -> None:
    pages = make_pages()
    assert not [name for name, page in pages.items() if "\\|" in page]
    assert "`Path or str or DataTable`" in pages["finetune.md"]


def test_characters_of_markdown_and_html_are_escaped() -> None:
    pages = make_pages()
    assert "&lt;mask>" in pages["fill.md"]
    assert "enwiki\\*" in pages["reproduce.md"]
