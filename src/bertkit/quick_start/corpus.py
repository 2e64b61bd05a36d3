"""The corpus of the quickstart: documentation of installed packages, its vocabulary and its shards."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bertkit.data.prepare import prepare
from bertkit.data.sources import ReadOptions
from bertkit.machine.processor import count_cores
from bertkit.quick_start.docstrings import Document, Source, harvest, list_sources
from bertkit.quick_start.workers import explain_ended_process
from bertkit.report.progress import Progress
from bertkit.text import wordpiece
from bertkit.text.wordpiece import WordPiece

_SHARE_TO_READ = 0.15

_SOURCE_MEGABYTES_PER_MINUTE = 10
"""A tenth of it is prose, of which BERT-mini trains one to two epochs in ten minutes on two cores."""

_MIN_DOCUMENTS = 2000
"""Read even if it takes longer: fewer are too little to learn from."""

_VOCABULARY = 16000


def read_documents(packages: Mapping[str, Path], minutes: float, progress: Progress) -> list[Document]:
    """The documentation of the packages, up to the amount that can be used or read in a share of ``minutes``."""
    deadline = time.monotonic() + _SHARE_TO_READ * minutes * 60
    sources = _sample(list_sources(packages), _SOURCE_MEGABYTES_PER_MINUTE * max(1, minutes))
    documents: list[Document] = []
    progress.start("reading documentation", len(sources), "file")
    with explain_ended_process():
        for done, found in enumerate(harvest(sources, count_cores()), start=1):
            documents += found
            progress.advance(done, documents=len(documents))
            if time.monotonic() > deadline and len(documents) >= _MIN_DOCUMENTS:
                break
    progress.finish()
    return documents


def _sample(sources: Sequence[Source], megabytes: float) -> list[Source]:
    """The first sources with ``megabytes`` of code and text together."""
    sizes = itertools.accumulate(0 if each.path is None else each.path.stat().st_size for each in sources)
    return [each for each, size in zip(sources, sizes, strict=True) if size <= megabytes * 1e6]


def describe_text(documents: Sequence[Document]) -> str:
    """How much text there is and where it comes from."""
    megabytes = sum(len(each.text) for each in documents) / 1e6
    packages = len({each.package for each in documents})
    return f"{megabytes:.1f} MB, the documentation of {packages} Python packages on this machine"


def prepare_corpus(documents: Sequence[Document], output: Path, progress: Progress) -> WordPiece:
    """Write the corpus as a file, train a vocabulary on it, and prepare its shards in ``output/data``."""
    file = output / "corpus.jsonl"
    output.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for each in documents:
            record = {"package": each.package, "module": each.module, "text": each.text}
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    progress.say(f"training a vocabulary of {_VOCABULARY:,} subwords")
    tokenizer = wordpiece.train((each.text for each in documents), vocab_size=_VOCABULARY)
    manifest = prepare([file], tokenizer=tokenizer, output=output / "data", reading=ReadOptions(field="text"))
    progress.say(f"prepared {manifest.tokens:,} tokens of {manifest.documents:,} documents")
    return tokenizer
