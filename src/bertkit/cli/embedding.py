"""The verbs about vectors of texts: embed and search."""

from __future__ import annotations

from pathlib import Path

import bertkit
from bertkit.cli.output import show_json, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import count_of
from bertkit.options.embedding import EmbedOptions, SearchOptions


def embed(options: EmbedOptions, *, verbosity: Verbosity) -> None:
    """Make a vector of every text of a file."""
    record = bertkit.embed(**vars(options))
    verbosity.say(f"{count_of(record.rows, 'vector')} of {count_of(record.dimension, 'number')} in {options.output}")
    shown = Path(options.output).suffix.lower() != ".parquet" and str(options.input) != "-"
    texts = ["--texts", str(options.input)] if shown else []
    if shown and options.encoding is not None:
        texts += ["--encoding", options.encoding]
    verbosity.suggest("bertkit", "search", options.output, "a query", "--model", options.model, *texts)


def search(options: SearchOptions, *, json: bool) -> None:
    """Show the texts that are nearest to a query."""
    found = bertkit.search(**vars(options))
    if json:
        show_json(found)
        return
    if any(each.text is None for each in found):
        show_table(("row", "cosine"), [(each.row, each.score) for each in found])
    else:
        show_table(("row", "cosine", "text"), [(each.row, each.score, each.text) for each in found])
