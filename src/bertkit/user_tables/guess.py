"""A task from a user's own files: columns, type and classes are guessed, described in a sentence, and can be given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertkit.errors import usage_error
from bertkit.formats.encodings import UTF_8
from bertkit.formats.memory_tables import name_table
from bertkit.formats.splits import find_splits
from bertkit.options.finetuning import LabelKind
from bertkit.task_files.conll_files import is_conll
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.task_types.text_classification import TextClassificationTask
from bertkit.user_tables.choices import choices_of, guess_choices
from bertkit.user_tables.files import Given, Guess, UserFiles
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
    kind: LabelKind | None = None,
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
        name=name_table(named[0].resolve()),
        paths=_splits(named, dev, test),
        encoding=encoding,
        max_length=max_length,
    )
    given = Given(text=text, pair=pair, label=label, kind=kind)
    guessed = _guess(files, given, allow_rare_labels=allow_rare_labels, fold_labels=fold_labels)
    if (allow_rare_labels or fold_labels) and not isinstance(guessed.task, TextClassificationTask | MultiLabelTask):
        unused = "--fold-labels" if fold_labels else "--allow-rare-labels"
        raise usage_error(f"{files.first} has no classes of texts ({guessed.sentence}): leave out {unused}.")
    return guessed


def _guess(files: UserFiles, given: Given, *, allow_rare_labels: bool, fold_labels: bool) -> Guess:
    if given.kind == "similarity":
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
