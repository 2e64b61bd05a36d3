"""Text that every machine with Python has: the documentation of the installed packages.

Docstrings and other long string constants (torch keeps its documentation in some) are read with ``ast``, so no code is
imported or run. Descriptions of distributions come from ``importlib.metadata``. Code, doctests, tables, signatures and
other text that is not English prose is left out, and so are repeated sentences: no two documents share one.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import inspect
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bertkit.storage.worker_pool import WorkerPool
from bertkit.text.sentences import split_sentences

STANDARD_LIBRARY = "python"
PROSE_RICH = (STANDARD_LIBRARY, "torch", "scipy", "sympy", "sklearn", "networkx", "numpy", "matplotlib")
"""Packages with much documentation, which are installed with bertkit. They are read first, the others by name."""

_MIN_CHARACTERS = 50
_MIN_SENTENCES = 3
_SOURCES_PER_CALL = 64
"""Sources that a worker process reads in one call: one to two seconds on a Zen 3."""

_NO_DOCUMENTATION = frozenset({"test", "tests", "testing", "idle_test", "site-packages", "_vendor", "lib2to3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The sentences of one docstring in their order, or those of all short docstrings of one module."""

    package: str
    module: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as running text."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source file, or the description of a package where ``path`` is None."""

    package: str
    module: str
    path: Path | None


def hash_fraction(text: str) -> float:
    """A hash of the text as a number in [0, 1): pseudo-random, and the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest()) / 2**48


def installed_packages() -> dict[str, Path]:
    """Name -> folder of every installed package, the prose-rich ones first."""
    found = {STANDARD_LIBRARY: Path(sysconfig.get_path("stdlib"))}
    for kind in ("purelib", "platlib"):
        for folder in Path(sysconfig.get_path(kind)).glob("*/"):
            if folder.name.isidentifier() and not folder.name.startswith("_"):
                found.setdefault(folder.name, folder)
    first = [name for name in PROSE_RICH if name in found]
    return {name: found[name] for name in [*first, *sorted(found.keys() - set(first))]}


def list_sources(packages: Mapping[str, Path]) -> list[Source]:
    """All sources, in an order whose first N are a fair sample for every N.

    Within a package the order is by hash. The packages take turns, first those with much documentation.
    """
    turns: list[tuple[bool, int, Source]] = []
    for package, folder in packages.items():
        files = [
            path
            for path in folder.rglob("*.py")
            if _NO_DOCUMENTATION.isdisjoint(path.relative_to(folder).parts) and path.is_file()  # no broken link
        ]
        modules = {".".join([package, *path.relative_to(folder).with_suffix("").parts]): path for path in files}
        sources = [
            Source(package=package, module=name, path=modules[name]) for name in sorted(modules, key=hash_fraction)
        ]
        sources.insert(0, Source(package=package, module=package, path=None))
        turns += [(package not in PROSE_RICH, turn, source) for turn, source in enumerate(sources)]
    return [source for _, _, source in sorted(turns, key=lambda each: each[:2])]


def harvest(sources: Sequence[Source], processes: int) -> Iterator[list[Document]]:
    """The documents of each source: its long docstrings, and one document with all short ones.

    Up to ``processes`` processes read them; the documents do not depend on their number.
    """
    seen: set[str] = set()
    batches = [sources[first : first + _SOURCES_PER_CALL] for first in range(0, len(sources), _SOURCES_PER_CALL)]
    with WorkerPool(_read_all, max(1, min(processes, len(batches)))) as pool:
        for batch, future in zip(batches, [pool.submit(batch) for batch in batches], strict=True):
            for source, strings in zip(batch, future.result(), strict=True):
                yield [
                    Document(package=source.package, module=source.module, sentences=tuple(sentences))
                    for sentences in _documents(strings, seen)
                ]


def _read_all(sources: Sequence[Source]) -> list[list[list[str]]]:
    """The sentences of each string of each source."""
    return [[read_prose(text) for text in _read(source)] for source in sources]


def _read(source: Source) -> list[str]:
    return _descriptions(source.package) if source.path is None else read_strings(source.path)


def _documents(strings: Iterable[Iterable[str]], seen: set[str]) -> Iterator[list[str]]:
    """The sentences of the strings of one module that are not in ``seen``, to which they are added."""
    short: list[str] = []
    for sentences in strings:
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in seen]
        seen.update(new)
        if len(new) >= _MIN_SENTENCES:
            yield new
        else:
            short += new
    if len(short) >= _MIN_SENTENCES:
        yield short


@cache
def list_distributions() -> Mapping[str, list[str]]:
    """The distributions of each installed package; reading the metadata of 150 takes a quarter of a second."""
    return importlib.metadata.packages_distributions()


def _descriptions(package: str) -> list[str]:
    """The long descriptions of the distributions of a package, nearly always one."""
    metadata = [importlib.metadata.metadata(each) for each in list_distributions().get(package, [])]
    return [str(each["Description"]) for each in metadata if "Description" in each]


def read_strings(path: Path) -> list[str]:
    """The string constants of at least 50 characters of a source file, in their order; none if it does not parse."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    strings = [
        (node.lineno, node.col_offset, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) >= _MIN_CHARACTERS
    ]
    return [text for _, _, text in sorted(strings) if not _SURROGATE.search(text)]


_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, as a test of encodings may have it in a string: no file of text can hold it."""

_FUNCTION_WORDS = re.compile(
    r"\b(a|an|and|are|as|at|be|by|can|for|from|has|have|if|in|into|is|it|its|may|must|not|of|on|or|should|such|that|the"
    r"|then|there|these|they|this|to|was|when|where|which|will|with|you)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*[,;:.!?)\"']*|\d+(?:\.\d+)?[,;:.!?)]*")
_SENTENCE = re.compile(r"[\"'(]?[A-Z].*[.!?][)\"']?")
_MIN_WORD_SHARE = 0.8

_FENCE = re.compile(r"\s*(```|~~~)")
_DOCTEST = re.compile(r"\s*(>>>|In \[\d)")
_DIRECTIVE = re.compile(r"\s*\.\. ")
_HEADING = re.compile(r"\s*(\w+:?|[-=~^*+#|_ ]{3,})$")
_TYPED_NAME = re.compile(r"\s*[\w*`]+(, [\w*`]+)* : ")
_ITEM = re.compile(r"\s*([-*+•]|\(?\d{1,2}[.)]|:\w+[^:]*:|[*`]{0,4}[\w.]+`{0,2}( \([^()]*(\([^()]*\))?[^()]*\))?:)\s+")
_MARKUP = (
    (re.compile(r":[\w:+-]+:`~?([^`<]*?)\s*(?:<[^`]*>)?`"), r"\1"),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`+([^`<]*?)\s*(?:<[^`]*>)?`+_{0,2}"), r"\1"),
    (re.compile(r"\*{1,2}([^*\s][^*]*)\*{1,2}"), r"\1"),
    (re.compile(r"\s*\[\d+\]_?"), ""),
    (re.compile(r"\s+"), " "),
)
"""Roles, links, literals, emphasis and citations of reStructuredText and Markdown; only their text is kept."""


def read_prose(text: str) -> list[str]:
    """The English sentences of a docstring or a README, without markup, in their order."""
    blocks = (_plain(block) for block in _blocks(inspect.cleandoc(text)))
    return [sentence for block in blocks for sentence in split_sentences(block) if is_prose(sentence)]


def is_prose(sentence: str) -> bool:
    """Whether this is an English sentence: it starts and ends like one, and at least 80 % of it are words."""
    words = sentence.split()
    if not 4 <= len(words) <= 60 or not _SENTENCE.fullmatch(sentence):
        return False
    plain = sum(_WORD.fullmatch(word.lstrip("(\"'")) is not None for word in words)
    return plain >= _MIN_WORD_SHARE * len(words) and _FUNCTION_WORDS.search(sentence) is not None


def _plain(block: str) -> str:
    for pattern, replacement in _MARKUP:
        block = pattern.sub(replacement, block)
    return block.strip()


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, and list items with their continuation lines."""
    block: list[str] = []
    for line in [*_prose_lines(text), ""]:
        item = _ITEM.match(line)
        if block and (not line or item or _indent(line) < _indent(block[0])):
            yield " ".join(block)
            block = []
        if line:
            block.append(" " * _indent(line) + line[item.end() :] if item else line)


def _prose_lines(text: str) -> Iterator[str]:
    """The lines of a docstring, with code, tables, headings and signatures replaced by empty lines."""
    hidden_below: int | None = None
    fenced = doctest = False
    for line in text.splitlines():
        is_fence = _FENCE.match(line) is not None
        fenced ^= is_fence
        doctest = bool(line.strip()) and (doctest or _DOCTEST.match(line) is not None)
        if hidden_below is not None and line.strip() and _indent(line) <= hidden_below:
            hidden_below = None
        hidden = fenced or is_fence or doctest or hidden_below is not None
        if hidden or not line.strip() or _HEADING.match(line) or _TYPED_NAME.match(line) or _DIRECTIVE.match(line):
            yield ""
        else:
            yield line
        if hidden_below is None and (_DIRECTIVE.match(line) or line.rstrip().endswith("::")):
            hidden_below = _indent(line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
