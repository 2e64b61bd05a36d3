"""How the names of files end, which says what is in them."""

from __future__ import annotations

from pathlib import Path

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
"""These come after the suffix of what is compressed."""

JSON_LINES = (".jsonl", ".ndjson")
JSON = (".json", *JSON_LINES)
TAG_COLUMNS = (".conll", ".iob", ".bio")
"""Files with a word and its tag in each line."""

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", *JSON, *TAG_COLUMNS)
"""Files of examples for a task."""


def suffix_of(path: Path) -> str:
    """The suffix without that of a compression, in lower case; empty if there is none."""
    return Path(path.stem if path.suffix.lower() in COMPRESSIONS else path.name).suffix.lower()
