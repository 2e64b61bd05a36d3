"""A task from a user's own files: columns, type and classes are guessed, described in a sentence, and can be given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertkit.formats.encodings import UTF_8
from bertkit.formats.splits import find_splits
from bertkit.task_files.conll_files import is_conll
from bertkit.user_tables.choices import choices_of, guess_choices
from bertkit.user_tables.files import Given, Guess, UserFiles
from bertkit.user_tables.label_column import Kind
from bertkit.user_tables.labels import guess_labels
from bertkit.user_tables.questions import guess_questions, have_questions
from bertkit.user_tables.similarity import guess_similarity
from bertkit.user_tables.tags import guess_tags, have_tags


def guess(
    train: Path | Sequence[Path],
    *,
    dev: Path | None = None,
    test: Path | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    max_length: int = 128,
    allow_rare_labels: bool = False,
    fold_labels: bool = False,
    encoding: str = UTF_8,
) -> Guess:
    """The task of the given files, or of the splits of a folder.

    ``text``, ``pair``, ``label`` (columns) and ``kind`` replace what is guessed. Every row of every file is checked, so
    that a wrong one is an error before anything is trained. Without a dev file, a tenth of the texts of every class is
    held out. With ``fold_labels`` labels that differ in case or spacing only are one. ``encoding`` is that of tables of
    texts and choices.
    """
    named = [Path(train)] if isinstance(train, str | Path) else [Path(path) for path in train]
    files = UserFiles(
        name=f"files:{named[0].resolve().name}",
        paths=_splits(named, dev, test),
        encoding=encoding,
        max_length=max_length,
    )
    given = Given(text=text, pair=pair, label=label, kind=kind)
    if kind == "similarity":
        return guess_similarity(files, given)
    if given == Given():
        if is_conll(files.first):  # first of all, because it may not be readable as a table
            return guess_tags(files)
        if have_questions(files):
            return guess_questions(files)
        if have_tags(files):
            return guess_tags(files)
    if choices := choices_of(files, given):
        return guess_choices(files, given, choices)
    return guess_labels(files, given, allow_rare_labels=allow_rare_labels, fold_labels=fold_labels)


def _splits(train: Sequence[Path], dev: Path | None, test: Path | None) -> dict[str, Sequence[Path]]:
    """The files of each split; a folder given as ``train`` has its own dev and test, unless they are given too."""
    paths: dict[str, Sequence[Path]] = {"train": train}
    if len(train) == 1 and train[0].is_dir():
        paths = dict(find_splits(train[0]))
    given = {"dev": dev, "test": test}
    return paths | {split: [Path(path)] for split, path in given.items() if path is not None}
