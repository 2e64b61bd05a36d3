"""What a record of options says about its verb, read from its source: the description, and one entry per option."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from bertkit.options.job import Options
from bertkit.ranges import Range, find_range, is_union


@dataclass(frozen=True, kw_only=True)
class Option:
    """One field of a record of options, and what its text says.

    ``default`` is ``dataclasses.MISSING`` if a value must be given, and ``stated_default`` what the text says of it
    where it is no constant.
    """

    name: str
    type: object
    default: object
    positional: bool
    meaning: str
    stated_default: str = ""
    range: Range | None = None

    @property
    def help(self) -> str:
        """The meaning, the stated default and the range."""
        default = f"[default: {self.stated_default}]" if self.stated_default else ""
        return " ".join(filter(None, [self.meaning, default, f"[{self.range}]" if self.range else ""]))

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is dataclasses.MISSING


def list_options(record: type[Options]) -> tuple[Option, ...]:
    """The options of a verb: positional arguments first, ``precision``, ``device`` and ``progress`` last."""
    types, docs = typing.get_type_hints(record), _field_docs(record)
    ranges = {name: find_range(hint) for name, hint in typing.get_type_hints(record, include_extras=True).items()}
    options = []
    for each in dataclasses.fields(record):
        meaning, _, default = docs[each.name].partition(" [default: ")
        options.append(
            Option(
                name=each.name,
                type=types[each.name],
                default=each.default,
                positional=not each.kw_only,
                meaning=meaning,
                stated_default=default.removesuffix("]"),
                range=ranges[each.name],
            )
        )
    last = {"precision": 1, "device": 2, "progress": 3}
    return tuple(sorted(options, key=lambda option: (not option.positional, last.get(option.name, 0))))


def format_type(hint: object) -> str:
    """A type as it is written in source code, without the names of modules."""
    if hint is Ellipsis:
        return "..."
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if is_union(hint):
        return " | ".join(map(format_type, arguments))
    if origin is typing.Literal:
        return " | ".join(map(repr, arguments))
    name = getattr(origin or hint, "__name__", str(hint)).replace("NoneType", "None")
    return f"{name}[{', '.join(map(format_type, arguments))}]" if arguments else name


def summarize(record: type[Options]) -> str:
    """The first paragraph of the description of a verb."""
    return describe(record).partition("\n\n")[0]


def describe(record: type[Options]) -> str:
    """What a verb does."""
    return inspect.cleandoc(record.__doc__ or "")


def _field_docs(record: type[Options]) -> dict[str, str]:
    """The text under each field, on one line; a field that a subclass repeats has the text of the subclass."""
    docs: dict[str, str] = {}
    for owner in reversed(record.__mro__):
        if issubclass(owner, Options):
            docs |= _docs_of_module(owner.__module__).get(owner.__name__, {})
    return docs


@cache
def _docs_of_module(module: str) -> dict[str, dict[str, str]]:
    """The texts under the fields of every class of a module."""
    classes = [
        node for node in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(node, ast.ClassDef)
    ]
    return {node.name: dict(_fields_with_docs(node)) for node in classes}


def _fields_with_docs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                yield name, " ".join(doc.split())
