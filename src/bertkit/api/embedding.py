"""The verbs about vectors of texts: embed and search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from bertkit.api.paths import given_path, optional_path
from bertkit.api.verb import verb
from bertkit.errors import count_of, usage_error, verb_of
from bertkit.formats.encodings import UTF_8, check_encoding
from bertkit.formats.memory_tables import TEMPORARY, errors_about
from bertkit.inference.embedding import check_layers
from bertkit.inference.embedding_files import Report, embed_file
from bertkit.inference.embedding_store import EmbeddingRecord, StoredVectors
from bertkit.inference.encoder_pipeline import settings_for
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.search import Neighbour, add_texts
from bertkit.inference.search import search as search_vectors
from bertkit.inference.text_column import TextColumn, open_text_column
from bertkit.options.embedding import EmbedOptions, SearchOptions
from bertkit.options.inputs import STREAM, read_stdin
from bertkit.options.job import AnyPath
from bertkit.report.progress import Progress
from bertkit.results import Results
from bertkit.storage.suffixes import suffix_of


@verb(EmbedOptions)
def embed(options: EmbedOptions) -> EmbeddingRecord:
    """What made the vectors: ``.rows``, ``.dimension``, ``.settings``, and fingerprints of the model."""
    encoding = check_encoding(options.encoding or UTF_8)
    with _as_file(given_path(options.input)) as input, Progress(options.progress) as bar:
        source = open_text_column(input, options.text, encoding=encoding)
        model = load(options.model, precision=options.precision)
        settings = settings_for(model, options.pool, _parse_layers(options.layers), options.normalize)
        if options.text is None and source.sentence:
            bar.say(source.sentence)

        def start(rows: int, empty: int) -> Report:
            if empty:
                having = f"{count_of(empty, 'row')} of {input.name} {verb_of(empty, 'has', 'have')}"
                bar.say(f"{having} an empty text; the vector of one says nothing")
            bar.start("embedding", rows, "row")
            return bar.advance

        record = embed_file(model, source, Path(options.output), settings, start=start, overwrite=options.overwrite)
        if model.num_truncated:
            bar.finish()
            cut = f"{count_of(model.num_truncated, 'text')} {verb_of(model.num_truncated, 'was', 'were')} cut"
            bar.say(f"{cut} to the {count_of(model.max_length, 'token')} that the model reads.")
    return record


@verb(SearchOptions)
def search(options: SearchOptions) -> Results[Neighbour]:
    """``row`` (from 1), ``score`` (the cosine) and ``text`` of each result, the nearest first; ``query`` of several."""
    stored = StoredVectors(Path(options.vectors))
    if options.texts is None and options.encoding is not None:
        raise usage_error("encoding is for the file of texts, and none is named: give texts, or leave encoding out.")
    source = stored.path if stored.holds_texts and options.texts is None else optional_path(options.texts)
    column = None if source is None else _open_texts(source, stored.record.text, options.encoding)
    model = options.model if isinstance(options.model, Pipeline) else load(cast(AnyPath, options.model))
    found = search_vectors(stored, options.query, model, top_k=options.top_k)
    return found if column is None else add_texts(found, column, stored.record)


@contextmanager
def _as_file(input: Path) -> Iterator[Path]:
    """The file itself, or a temporary one with the lines of stdin: texts are read twice, to be counted and embedded."""
    if input != STREAM:
        yield input
        return
    with TemporaryDirectory(prefix=TEMPORARY) as folder:
        path = Path(folder) / "stdin.txt"
        with path.open("wb") as file:
            file.writelines(read_stdin())
        with errors_about(path, "stdin"):
            yield path


def _open_texts(source: Path, column: str, encoding: str | None) -> TextColumn:
    """The column that was embedded, or the lines of a ``.txt``."""
    is_text = suffix_of(source) == ".txt"
    return open_text_column(source, None if is_text else column, encoding=check_encoding(encoding or UTF_8))


def _parse_layers(layers: str | tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(layers, str):
        return check_layers(layers)
    try:
        return tuple(int(layer) for layer in layers.split(","))
    except ValueError as error:
        raise usage_error(
            f'layers is "{layers}"; it must be whole numbers with commas, such as -4,-3,-2,-1.'
        ) from error
