"""A labelled task made out of the harvest: which package does a text document?

The classes are the packages; a text is two sentences from the beginning of a docstring; sentences that give a
package's name away are not used. Whole modules are held out, and nothing of them is read in pre-training either.
"""

from __future__ import annotations

import csv
import importlib.metadata
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import BertkitError
from bertkit.quick_start.docstrings import Document, draw

_MOST_CLASSES = 8
_LEAST_DOCUMENTS = 12
_HELDOUT_MODULES = 0.2
_SENTENCES = 2
_SHORT_NAMES = ("np", "nx", "plt", "mpl", "pyplot", "pytorch", "scikit")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledText:
    """Two sentences, and the package that they are from."""

    text: str
    package: str


@dataclass(frozen=True, kw_only=True)
class Split:
    """``unlabelled`` documents to pre-train on, ``heldout`` ones, and labelled texts of both, as many of every class.

    The texts of ``train`` are among the unlabelled documents, those of ``dev`` are among the held-out ones.
    """

    classes: tuple[str, ...]
    unlabelled: list[Document]
    heldout: list[Document]
    train: list[LabelledText]
    dev: list[LabelledText]


def split(documents: Iterable[Document]) -> Split:
    """Take the held-out modules away and label the beginnings of docstrings, in an order that means nothing.

    The classes are the first eight packages, in the order of the documents, that have enough of them on both sides.
    The order of the texts is by hash, class by class in turn, so that any first part of them is balanced too.
    """
    documents = list(documents)
    classes = _choose_classes(documents)
    if len(classes) < 2:
        raise BertkitError("the documentation of the installed packages is too little to make a labelled task of.")
    unlabelled: list[Document] = []
    heldout: list[Document] = []
    for document in documents:
        (heldout if document.package in classes and is_heldout(document.module) else unlabelled).append(document)
    return Split(
        classes=classes,
        unlabelled=unlabelled,
        heldout=heldout,
        train=_label(unlabelled, classes),
        dev=_label(heldout, classes),
    )


def _choose_classes(documents: Sequence[Document]) -> tuple[str, ...]:
    sides = Counter((document.package, is_heldout(document.module)) for document in documents)
    packages = dict.fromkeys(document.package for document in documents)
    enough = [each for each in packages if min(sides[each, True], sides[each, False]) >= _LEAST_DOCUMENTS]
    return tuple(enough[:_MOST_CLASSES])


def _label(documents: Iterable[Document], classes: Sequence[str]) -> list[LabelledText]:
    """A text of each class in turn, until a class has no more."""
    telling = _names_of(classes)
    texts: dict[str, list[LabelledText]] = {each: [] for each in classes}
    for document in sorted(documents, key=lambda document: draw(document.text)):
        opening = _opening(document, telling)
        if document.package in classes and opening is not None:
            texts[document.package].append(LabelledText(text=opening, package=document.package))
    return [each for turn in zip(*texts.values(), strict=False) for each in turn]


def is_heldout(module: str) -> bool:
    """Whether a module is on the side of ``dev``; one in five is, by the hash of its name."""
    return draw(module) < _HELDOUT_MODULES


def write_csv(texts: Sequence[LabelledText], path: Path) -> None:
    """A table with the columns ``text`` and ``package``."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "package"])
        writer.writerows([each.text, each.package] for each in texts)


def _opening(document: Document, telling: re.Pattern[str]) -> str | None:
    """The first sentences of a document without those that tell a name; None if there are too few."""
    silent = [sentence for sentence in document.sentences if not telling.search(sentence)][:_SENTENCES]
    return " ".join(silent) if len(silent) == _SENTENCES else None


def _names_of(packages: Sequence[str]) -> re.Pattern[str]:
    """The beginning of any name of the packages: as imported, as installed, and the usual short ones."""
    distributions = importlib.metadata.packages_distributions()
    installed = [name for package in packages for name in distributions.get(package, [])]
    return re.compile(r"\b(" + "|".join(map(re.escape, [*packages, *installed, *_SHORT_NAMES])) + ")", re.IGNORECASE)
