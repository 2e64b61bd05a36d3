"""What results have in common: one line when printed, a table in a notebook, plain values, pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from itertools import islice
from typing import Any, ClassVar, SupportsIndex, TypeVar, overload

from bertkit.config.records import to_plain
from bertkit.escaping import printable, to_html
from bertkit.optional import require

LONGEST_LINE = 99
"""Characters of a result when it is printed."""

_LONGEST_TEXT = 40
_MOST_ITEMS = 3
_MOST_SHOWN = 5
_MOST_ROWS = 20


class Result:
    """A base of dataclasses (with ``repr=False``) that a user gets from bertkit."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, which ``json.dumps`` takes."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def __repr__(self) -> str:
        shown = (f"{each.name}={_short(getattr(self, each.name))}" for each in fields(self) if _is_set(self, each))
        line = f"{type(self).__name__}({', '.join(shown)})"
        return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 4]}...)"

    def _repr_html_(self) -> str:
        return _html_table(("field", "value"), self.to_dict().items())


SomeResult = TypeVar("SomeResult", bound=Result)


class Results(list[SomeResult]):
    """A list of results of one type, which may be sorted and filtered.

    ``row_index`` is the pandas index of the DataFrame whose rows they are about.
    """

    def __init__(self, results: Iterable[SomeResult] = (), *, row_index: Any = None) -> None:
        super().__init__(results)
        self._all_rows = row_index
        self._of_rows = [] if row_index is None else list(self)

    @property
    def row_index(self) -> Any:
        """The rows of the table of these results, in their order now; None unless each of them is about a row."""
        if self._all_rows is None:
            return None
        places = {id(result): place for place, result in enumerate(self._of_rows)}
        found = [places.get(id(each)) for each in self]
        return None if None in found else self._all_rows.take(found)

    @overload
    def __getitem__(self, place: SupportsIndex) -> SomeResult: ...

    @overload
    def __getitem__(self, place: slice) -> Results[SomeResult]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> SomeResult | Results[SomeResult]:
        if not isinstance(place, slice):
            return super().__getitem__(place)
        rows = self.row_index
        return Results(super().__getitem__(place), row_index=None if rows is None else rows[place])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Every result as plain values."""
        return [each.to_dict() for each in self]

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row per result; ``scores`` have a column for each class, such as scores.good.

        Its rows have the index of those that they are about, so that both can be joined.
        """
        pandas = require("pandas", extra="pandas", purpose="a DataFrame")
        return pandas.DataFrame([_flatten(each) for each in self.to_dicts()], index=self.row_index)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, islice(self, _MOST_SHOWN)))
        more = f", ... {len(self) - _MOST_SHOWN:,} more" if len(self) > _MOST_SHOWN else ""
        return f"[{shown}{more}]"

    def _repr_html_(self) -> str:
        rows = [_flatten(each.to_dict()) for each in islice(self, _MOST_ROWS)]
        names = list(dict.fromkeys(name for row in rows for name, value in row.items() if value is not None))
        table = _html_table(names, ([row.get(name, "") for name in names] for row in rows))
        return table if len(self) <= _MOST_ROWS else f"{table}<p>{len(self) - _MOST_ROWS:,} more</p>"


def _is_set(record: object, each: Field[Any]) -> bool:
    """Whether a field differs from its default, which is not shown."""
    default = each.default_factory() if each.default_factory is not MISSING else each.default
    return default is MISSING or getattr(record, each.name) != default


def _short(value: object) -> str:
    """A value in a few characters."""
    shape = getattr(value, "shape", None)
    if shape is not None and hasattr(value, "tolist"):  # an array, or a number, of NumPy
        return _short(value.tolist()) if len(shape) < 2 else f"array{shape}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return repr(printable(value if len(value) <= _LONGEST_TEXT else f"{value[: _LONGEST_TEXT - 3]}..."))
    if isinstance(value, Mapping):
        items = [f"{key}: {_short(each)}" for key, each in islice(_largest_first(value), _MOST_ITEMS)]
        return "{" + ", ".join([*items, "..."] if len(value) > _MOST_ITEMS else items) + "}"
    if isinstance(value, list | tuple):
        parts = [_short(each) for each in islice(value, _MOST_ITEMS)]
        return "[" + ", ".join([*parts, "..."] if len(value) > _MOST_ITEMS else parts) + "]"
    return str(value)


def _largest_first(values: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    if all(isinstance(each, int | float) for each in values.values()):
        return sorted(values.items(), key=lambda item: -item[1])
    return values.items()


def _flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record whose mappings, such as ``scores``, are fields of their own."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            flat[name] = value
    return flat


def _html_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{to_html(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{to_html(_cell(each))}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return value if isinstance(value, str) else _short(value)
