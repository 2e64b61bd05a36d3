"""Texts for tests of tokenizers: difficult characters, and real paragraphs."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import zstandard

HARD = [
    "Isn't it the foxes' den?! (\"Yes,\" said Ann — twice...)",
    "naïve résumé e\u0301 Ångström İstanbul ΑΣ ß ﬁ",
    "中文and日本語 한국어 \U0002f800 \ue000 👍\u200d👍",
    "a\tb\u00a0c\u2003d\u200be\0f\ufffdg\r\nh",
    "x" * 300,
    "3.14 $5 50% C++ http://a.b/c?d=e_f",
    "",
    " \n ",
]


def real_texts(data_folder: Path, count: int) -> list[str]:
    """Paragraphs of two encyclopaedias in different scripts and of a book, ``count`` of each."""
    found: list[str] = []
    for name in ("enwiki-00.jsonl.zst", "kowiki.jsonl.zst"):
        with (data_folder / "corpora" / name).open("rb") as packed:
            lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), encoding="utf-8")
            paragraphs = (part for line in lines for part in json.loads(line)["text"].split("\n"))
            found += [next(paragraphs) for _ in range(count)]
    book = sorted((data_folder / "corpora" / "books").glob("*.txt.gz"))[0]
    return found + gzip.decompress(book.read_bytes()).decode("utf-8").split("\n\n")[:count]
