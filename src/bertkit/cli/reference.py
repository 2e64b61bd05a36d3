"""The pages of docs/reference and the manual page, made from the options of the verbs.

``python -m bertkit.cli.reference FOLDER`` writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bertkit.cli.app import VERB_FUNCTIONS
from bertkit.cli.commands import list_switches
from bertkit.cli.man_page import make_man_page
from bertkit.escaping import Markup
from bertkit.options.command import spell_option, spell_usage
from bertkit.options.description import Option, describe, format_type, list_options, summarize
from bertkit.options.verbs import HEADINGS, VERBS
from bertkit.report.tables import markdown_table

INDEX = "README.md"
MANUAL = "bertkit.1"


def make_pages() -> Mapping[str, str]:
    """The text of every page by the name of its file: an index, one page per verb, and the manual page."""
    pages = {_file_name(verb): "\n".join(_describe_verb(verb, each)) for verb, each in VERB_FUNCTIONS.items()}
    return {INDEX: "\n".join(_list_verbs()), MANUAL: make_man_page(VERB_FUNCTIONS), **pages}


def write_pages(folder: Path) -> None:
    """Write the pages into ``folder``, and delete pages of verbs that no longer exist."""
    pages = make_pages()
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in folder.glob("*.md")} - pages.keys():
        (folder / stale).unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


def _file_name(verb: str) -> str:
    return f"{verb.replace(' ', '-')}.md"


def _list_verbs() -> Iterator[str]:
    yield "# Reference\n"
    yield "Every verb is a command and a Python function with the same options. These pages are generated from"
    yield "`src/bertkit/options` by `make docs`.\n"
    for heading, verbs in HEADINGS.items():
        yield f"## {heading.capitalize()}\n"
        yield from (f"* [{verb}]({_file_name(verb)}): {_escape(summarize(record))}" for verb, record in verbs.items())
        yield ""


def _describe_verb(verb: str, function: Callable[..., None]) -> Iterator[str]:
    options, switches = list_options(VERBS[verb]), list_switches(function)
    yield f"# {verb}\n"
    yield f"{describe(VERBS[verb])}\n"
    yield f"```console\n$ {spell_usage(verb)}\n```\n"
    yield f"```python\nbertkit.{function.__name__}({', '.join(_spell_parameters(options))})\n```\n"
    if options:
        yield markdown_table(("option", "in Python", "type", "default", "meaning"), map(_describe_option, options))
    if switches:
        yield "Only on the command line:\n"
        yield markdown_table(
            ("option", "meaning"), [(Markup(f"`--{name}`"), Markup(help)) for name, help in switches.items()]
        )


def _spell_parameters(options: Sequence[Option]) -> Iterator[str]:
    """The required parameters; optional ones are an ellipsis."""
    required = [option for option in options if option.required]
    yield from (option.name for option in required if option.positional)
    yield from (f"{option.name}=..." for option in required if not option.positional)
    if len(required) < len(options):
        yield "..."


def _describe_option(option: Option) -> tuple[Markup, ...]:
    shown = option.name.upper() if option.positional else spell_option(option.name)
    default = "" if option.required or option.default in (None, ()) else f"`{option.default}`"
    # Without bars, which some programs show with a backslash; None is the empty default.
    values = format_type(option.type).removesuffix(" | None").replace(" | ", " or ")
    cells = f"`{shown}`", f"`{option.name}`", f"`{values}`", default, _escape(option.help)
    return tuple(map(Markup, cells))


def _escape(text: str) -> str:
    """Text without the characters that mean something in Markdown."""
    return text.replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
