"""A classification task from documentation: which package does a text document?

The classes are packages. A text is the first two sentences of a docstring that do not contain the name of a package.
Whole modules are held out, and their text is not used in pre-training either.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import BertkitError
from bertkit.quick_start.docstrings import Document, hash_fraction, list_distributions

_MAX_CLASSES = 8
_MIN_DOCUMENTS = 12
_HELD_OUT_SHARE = 0.2
_SENTENCES = 2
_SHORT_NAMES = ("np", "nx", "plt", "mpl", "pyplot", "pytorch", "scikit")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledText:
    """Two sentences and the package that they document."""

    text: str
    package: str


@dataclass(frozen=True, kw_only=True)
class DocumentSplit:
    """``unlabelled`` documents to pre-train on, ``heldout`` ones, and labelled texts, equally many of every class.

    The texts of ``train`` are from the unlabelled documents, those of ``dev`` from the held-out ones.
    """

    classes: tuple[str, ...]
    unlabelled: list[Document]
    heldout: list[Document]
    train: list[LabelledText]
    dev: list[LabelledText]


def split_documents(documents: Iterable[Document]) -> DocumentSplit:
    """Hold out modules and label the beginnings of docstrings.

    The classes are the first eight packages, in the order of the documents, with enough documents on both sides. Texts
    are ordered by hash, the classes taking turns, so that the first N are balanced for every N.
    """
    documents = list(documents)
    classes = _choose_classes(documents)
    unlabelled: list[Document] = []
    heldout: list[Document] = []
    for document in documents:
        (heldout if document.package in classes and is_heldout(document.module) else unlabelled).append(document)
    train, dev = _label(unlabelled, classes), _label(heldout, classes)
    if len(classes) < 2 or not train or not dev:
        raise BertkitError(
            "the installed packages have too little documentation for a classification task. "
            "Install more packages with docstrings, such as numpy and torch."
        )
    return DocumentSplit(classes=classes, unlabelled=unlabelled, heldout=heldout, train=train, dev=dev)


def _choose_classes(documents: Sequence[Document]) -> tuple[str, ...]:
    sides = Counter((document.package, is_heldout(document.module)) for document in documents)
    packages = dict.fromkeys(document.package for document in documents)
    enough = [each for each in packages if min(sides[each, True], sides[each, False]) >= _MIN_DOCUMENTS]
    return tuple(enough[:_MAX_CLASSES])


def _label(documents: Iterable[Document], classes: Sequence[str]) -> list[LabelledText]:
    """One text of each class in turn, until a class has no more."""
    names = _match_names(classes)
    texts: dict[str, list[LabelledText]] = {each: [] for each in classes}
    for document in sorted(documents, key=lambda document: hash_fraction(document.text)):
        opening = _opening(document, names)
        if document.package in classes and opening is not None:
            texts[document.package].append(LabelledText(text=opening, package=document.package))
    return [each for turn in zip(*texts.values(), strict=False) for each in turn]


def is_heldout(module: str) -> bool:
    """Whether a module is held out for ``dev``; one in five is, by the hash of its name."""
    return hash_fraction(module) < _HELD_OUT_SHARE


def write_csv(texts: Sequence[LabelledText], path: Path) -> None:
    """A table with the columns ``text`` and ``package``."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "package"])
        writer.writerows([each.text, each.package] for each in texts)


def _opening(document: Document, names: re.Pattern[str]) -> str | None:
    """The first two sentences of a document without the name of a package; None if there are fewer."""
    sentences = [sentence for sentence in document.sentences if not names.search(sentence)][:_SENTENCES]
    return " ".join(sentences) if len(sentences) == _SENTENCES else None


def _match_names(packages: Sequence[str]) -> re.Pattern[str]:
    """A pattern of words that start with a name of the packages: as imported, as installed, or a usual short form."""
    distributions = list_distributions()
    installed = [name for package in packages for name in distributions.get(package, [])]
    return re.compile(r"\b(" + "|".join(map(re.escape, [*packages, *installed, *_SHORT_NAMES])) + ")", re.IGNORECASE)
