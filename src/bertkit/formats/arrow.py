"""Tables that pyarrow reads: Parquet files, and folders that Hugging Face ``datasets`` wrote with ``save_to_disk``.

Such a folder has ``dataset_info.json`` (the columns, and the names of classes that are stored as numbers),
``state.json`` (the ``.arrow`` files, in order) and those files. A folder of several splits has such a folder for each,
named in ``dataset_dict.json``. The ``datasets`` library is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from bertkit.errors import BertkitError, data_error
from bertkit.formats.cells import find_repeated
from bertkit.formats.compression import check_unpacked
from bertkit.optional import require
from bertkit.storage.atomic import read_object
from bertkit.storage.json_text import parse_json
from bertkit.storage.suffixes import COMPRESSIONS

Values = tuple[object, ...]
_Converter = Callable[[object], object]

_ROWS_AT_ONCE = 1024
_TEXT_TYPES = ("string", "large_string", "string_view")

_DAMAGE = (OSError, ValueError, ArithmeticError, LookupError, TypeError, NotImplementedError)
"""What pyarrow raises for damaged files, and for values that Python does not have, such as a date in the year 100,000.
"""


def require_parquet(purpose: str) -> tuple[ModuleType, ModuleType]:
    """``pyarrow`` and ``pyarrow.parquet``; where they are missing, a usage error that begins with ``purpose``."""
    arrow, parquet = (require(module, extra="parquet", purpose=purpose) for module in ("pyarrow", "pyarrow.parquet"))
    return arrow, parquet


def parquet_names(path: Path) -> tuple[str, ...]:
    """The columns of a Parquet file."""
    with open_parquet(path) as file:
        return check_names(path, file.schema_arrow.names)


def unpacked_size(metadata: Any, columns: Sequence[str]) -> int:
    """The bytes that ``columns`` (their first levels) have in a Parquet file, as it declares them, uncompressed."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    chunks = (group.column(number) for group in groups for number in range(group.num_columns))
    starts = tuple(f"{column}." for column in columns)  # a name may have points, and so have the paths below it
    return sum(each.total_uncompressed_size for each in chunks if f"{each.path_in_schema}.".startswith(starts))


def text_columns(schema: Any) -> list[str]:
    """The names of the columns of an Arrow schema that are text."""
    return [column.name for column in schema if _is_text(column.type)]


def _is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, also as a dictionary (a categorical of pandas)."""
    return str(kind.value_type if hasattr(kind, "index_type") else kind) in _TEXT_TYPES


def parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[Values]:
    """The values of ``columns`` in each row of a Parquet file."""
    number = 0
    with open_parquet(path) as file:
        check_unpacked(path, unpacked_size(file.metadata, columns))
        texts = text_columns(file.schema_arrow)
        features = _read_features(file.schema_arrow, path)
    converters = [build_converter(_feature_of(column, features), path) for column in columns]
    # A text that many rows share stays one text: a thousand copies of it could fill the memory.
    with open_parquet(path, read_dictionary=texts) as file:
        try:
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=list(columns)):
                for row in _rows(batch, columns, converters):
                    number += 1
                    yield row
        except BertkitError:
            raise
        except _DAMAGE as error:
            raise data_error(f"{path}, row {number + 1:,}: cannot be read ({error}).") from error


def dataset_splits(folder: Path) -> list[str]:
    """The splits in ``dataset_dict.json``; none without such a file."""
    file = folder / "dataset_dict.json"
    splits = read_object(file).get("splits") if file.is_file() else []
    if not isinstance(splits, list):
        raise data_error(f"{file} does not name its splits.")
    return [str(split) for split in splits]


def dataset_names(folder: Path) -> tuple[str, ...]:
    """The columns of one split."""
    with _open_stream(_arrow_files(folder)[0]) as reader:
        return check_names(folder, reader.schema.names)


def check_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns; one that occurs twice is a data error."""
    if (repeated := find_repeated(names)) is not None:
        raise data_error(f'{path} has more than one column "{repeated}". Rename all but one.')
    return tuple(names)


def dataset_rows(folder: Path, columns: Sequence[str]) -> Iterator[Values]:
    """The values of ``columns`` in each row of one split; classes by their names, -1 (no class) as None."""
    info = folder / "dataset_info.json"
    features = read_object(info, missing_ok=True).get("features")
    converters = [build_converter(_feature_of(column, features), info) for column in columns]
    for file in _arrow_files(folder):
        number = 0
        with _open_stream(file) as stream:
            try:
                for batch in stream:
                    batch.validate(full=True)  # an offset beyond the end of the data would end the process
                    for row in _rows(batch, columns, converters):
                        number += 1
                        yield row
            except BertkitError:
                raise
            except _DAMAGE as error:
                raise data_error(f"{file}, row {number + 1:,}: cannot be read ({error}).") from error


def _read_features(schema: Any, path: Path) -> object:
    """What ``datasets`` writes about the columns into a Parquet file, such as the names of classes; None in another."""
    written = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        return parse_json(written.decode("utf-8"))["info"]["features"]
    except (KeyError, TypeError):
        return None
    except ValueError as error:
        raise data_error(f"{path} describes its columns in a way that cannot be read ({error}).") from error


def _feature_of(column: str, features: object) -> object:
    """What ``features`` say about a column; None if they are no object or do not have it."""
    return features.get(column) if isinstance(features, dict) else None


def _rows(batch: Any, columns: Sequence[str], converters: Sequence[_Converter]) -> Iterator[Values]:
    for row in zip(*(list_values(batch.column(name)) for name in columns), strict=True):
        yield tuple(convert(value) for convert, value in zip(converters, row, strict=True))


def list_values(column: Any) -> list[Any]:
    """The values of an Arrow array; equal values of a dictionary are one object."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    places = column.indices.to_pylist()
    values = {place: column.dictionary[place].as_py() for place in set(places) if place is not None}
    return [values.get(place) for place in places]


def _arrow_files(folder: Path) -> list[Path]:
    """The files in ``state.json``, in its order; without it, all ``.arrow`` files."""
    state = read_object(folder / "state.json", missing_ok=True)
    if state.get("_indices_data_files"):
        raise data_error(f"{folder} is a selection of rows. Save it with dataset.flatten_indices().save_to_disk(...).")
    listed = state.get("_data_files") or []
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise data_error(f"{folder / 'state.json'} does not list its files.")
    names = [Path(str(each.get("filename"))).name for each in listed]
    files = [folder / name for name in names] or sorted(folder.glob("*.arrow"))
    if not files:
        raise data_error(f"{folder} has no .arrow file.")
    return files


def build_converter(feature: object, source: Path | str) -> _Converter:
    """A function that converts a value of a column: the number of a class to its name, also inside lists and records.

    ``datasets`` before version 4 stores a sequence of records, such as the answers of SQuAD, as one record of lists.
    """
    if isinstance(feature, list) and len(feature) == 1:
        feature = {"feature": feature[0]}
    if not isinstance(feature, dict):
        return _unchanged
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names") or []
        if not isinstance(names, list):
            raise data_error(f"{source} has no list of names for the classes of a column.")
        spelled = list(map(str, names))
        return lambda value: _class_name(value, spelled, source)
    if "feature" in feature:
        convert = build_converter(feature["feature"], source)
        convert_record = _build_record_converter(feature["feature"], source, in_lists=True)
        return lambda value: [convert(each) for each in value] if isinstance(value, list) else convert_record(value)
    return _build_record_converter(feature, source)


def _build_record_converter(fields: object, source: Path | str, *, in_lists: bool = False) -> _Converter:
    """A function that converts the fields of a record; with ``in_lists`` each field is a list of values."""
    if not isinstance(fields, dict) or "_type" in fields:
        return _unchanged
    converters = {
        name: build_converter({"feature": feature} if in_lists else feature, source) for name, feature in fields.items()
    }

    def convert(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: converters.get(name, _unchanged)(each) for name, each in value.items()}

    return convert


def _unchanged(value: object) -> object:
    return value


def _class_name(value: object, names: Sequence[str], source: Path | str) -> str | None:
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or not 0 <= value < len(names):
        raise data_error(f"{source} names {len(names)} classes, and a row has number {value}.")
    return names[value]


@contextmanager
def open_parquet(path: Path, stream: IO[bytes] | None = None, *, advice: str = "", **options: object) -> Iterator[Any]:
    """The ``pyarrow.parquet.ParquetFile`` at ``path``, or in ``stream``, which is its content; ``options`` are its own.

    A damaged file is a data error, which ends with ``advice``, also while it is read.
    """
    parquet = _pyarrow("parquet", path)
    try:
        with parquet.ParquetFile(path if stream is None else stream, **options) as file:
            yield file
    except BertkitError:
        raise
    except FileNotFoundError as error:
        raise data_error(f"{path} does not exist.") from error
    except _DAMAGE as error:
        if stream is None and path.suffix.lower() in COMPRESSIONS:
            advice = "It is compressed as a whole: decompress it; the columns inside stay compressed."
        raise data_error(f"{path} is not a readable Parquet file: {str(error).rstrip('.')}. {advice}") from error


@contextmanager
def _open_stream(path: Path) -> Iterator[Any]:
    ipc = _pyarrow("ipc", path)
    try:
        with ipc.open_stream(_pyarrow("lib", path).memory_map(str(path))) as reader:
            yield reader
    except BertkitError:
        raise
    except FileNotFoundError as error:
        raise data_error(f"{path} does not exist.") from error
    except _DAMAGE as error:
        raise data_error(f"{path} is not a readable Arrow file: {error}.") from error


def _pyarrow(module: str, path: Path) -> ModuleType:
    return require(f"pyarrow.{module}", extra="parquet", purpose=str(path))
