"""One text or a pair of them, and a class or a number to tell: the record that such tasks are values of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Feature, Label
from bertkit.contracts import Encoder, Objective, Tokenizer
from bertkit.data.features import assemble, assemble_windows, stack
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.formats.lines import at_line
from bertkit.formats.tables import Format, Table, sniff
from bertkit.metrics.classification import accuracy, binary_f1, macro_f1, matthews
from bertkit.metrics.correlation import pearson, spearman
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.task_types.base import FileTask
from bertkit.task_types.class_weights import balance_classes, check_weights, parse_weights, spread_weights
from bertkit.task_types.columns import guess_columns
from bertkit.task_types.held_out import describe_overlap, describe_repeated_ids, hold_out
from bertkit.task_types.task_files import Cells, Columns, read_cells

Answer = str | float | tuple[str, ...]
"""A class, a number, or the labels that apply."""


@dataclass(frozen=True, slots=True)
class TextExample:
    """``label`` is the name of a class, a number, or several labels; None where it is not known."""

    id: str
    first: str
    second: str | None = None
    label: Answer | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """``label`` is a class, with the probability of every class in ``scores``, or a number without scores.

    ``cut`` counts the tokens at the end of the text that the model has not read.
    """

    label: Answer
    scores: Mapping[str, float] = field(default_factory=dict)
    num_truncated: int = 0


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of a task lie between ``lowest`` and ``highest``; (number - origin) / unit is what is learnt."""

    lowest: float | None = None
    highest: float | None = None
    origin: float = 0.0
    unit: float = 1.0


@dataclass(frozen=True, kw_only=True)
class TextClassificationTask(FileTask):
    """A class of ``labels`` or, when there are none, a number, told from a text or (``pair``) two.

    ``spellings`` are the labels as published files write them, where that differs; names are understood too.
    ``metric`` and ``also`` are names of scores; ``f1`` is that of the second label. ``class_weights`` multiply the loss
    of some classes. With a ``stride`` a text that is too long is read in windows that begin every so many tokens, each
    of them an example in training; the answer is the mean of theirs. Without, its end is cut off.

    With ``both_orders`` a pair is read twice, the second time with its texts changed over, and told from the sum of the
    two states: for questions in which neither comes first (Radford et al. 2018, section 3.3).
    """

    shape: ClassVar[str] = "text"

    labels: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    pair: bool = False
    numbers: Numbers = field(default_factory=Numbers)
    class_weights: Mapping[str, float] = field(default_factory=dict)
    stride: int = 0
    both_orders: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weights(self.name, self.labels, self.class_weights)
        if self.both_orders and (self.stride or not self.pair):
            reason = "is read in windows, which have a stride" if self.pair else "is about one text"
            raise usage_error(f"both_orders is for pairs that are read whole; {self.name} {reason}.")
        if not 0 <= self.stride <= max(self._widest_stride(), 0):
            raise usage_error(
                f"windows that begin every {self.stride} tokens leave some out: one of {self.max_length} tokens holds "
                f"{self._widest_stride()} of the text. Take a stride up to that."
            )

    def _widest_stride(self) -> int:
        """The tokens of a long text in one window, beside as many of the other text of a pair."""
        room = self.max_length - (3 if self.pair else 2)
        return room - room // 2 if self.pair else room

    def advise_on_cuts(self) -> str:
        """How a text that is too long is read whole."""
        if self.stride:
            return f"Longer windows: --set task.max_length={2 * self.max_length}"
        return f"Read them whole: --set task.stride={min(self.max_length // 2, self._widest_stride())}"

    def weighted(self, weights: str) -> Self:
        """The same with weights of classes: ``balanced``, or such as ``positive=2,negative=0.5``."""
        if not self.labels:
            raise usage_error(f"{self.name} tells a number; it has no classes to weigh.")
        if weights == "balanced":
            return replace(self, class_weights=self._balance([each.label for each in self.examples("train")]))
        return replace(self, class_weights=parse_weights(weights))

    def _balance(self, answers: Sequence[Any]) -> dict[str, float]:
        return balance_classes(self.labels, answers)

    def rows(self, split: str) -> Iterator[TextExample]:
        """Every row of the files of a split, with a label or without."""
        for cells in self.files.read(self.name, split):
            yield self._example(cells, split)

    def read(self, path: Path, columns: Columns | None = None) -> Iterator[TextExample]:
        """New input, without labels: a table with the task's columns, or one text (pair: tab-separated) a line.

        A task that never had files of its own reads the columns ``text`` and ``pair``.
        """
        table, own = self._open(path)
        for cells in read_cells(table, columns or own):
            yield TextExample(cells.id, cells.first, cells.second)

    def read_line(self, name: str, line: str) -> TextExample:
        """One text, or (``pair``) two with a tab between them."""
        first, tab, second = line.partition("\t") if self.pair else (line, "", "")
        return TextExample(name, first, second if tab else None)

    def notes(self) -> list[str]:
        """What a person should know about train and dev before trusting a score, one sentence each."""
        notes: list[str] = []
        train = self._labelled_with_notes("train", notes)
        dev = self._labelled_with_notes("dev", notes) if "dev" in self.files.splits else []
        if self.heldout:
            held = len(hold_out(train, self.heldout)[1])
            notes.append(
                f"no dev file: {held:,} of {len(train):,} examples are held out as dev "
                f"({self.heldout:.0%} of every class, chosen by the hash of the text; equal texts stay together)"
            )
        return notes + describe_overlap(train, dev)

    def _labelled_with_notes(self, split: str, notes: list[str]) -> list[TextExample]:
        """The labelled examples of a split, read once; what is left out is added to ``notes``."""
        tables = self.files.tables(self.name, split)
        columns = self.files.splits[split].columns
        rows = [self._example(cells, split) for table in tables for cells in read_cells(table, columns)]
        labelled = [example for example in rows if example.label is not None]
        if len(labelled) < len(rows):
            notes.append(f"{len(rows) - len(labelled):,} rows of {split} have no label and are left out")
        if broken := sum(table.broken for table in tables):
            notes.append(f"{broken:,} broken rows of {split} are left out")
        if empty := sum(_lacks_text(example) for example in labelled):
            notes.append(f"{empty:,} examples of {split} have an empty text, and are kept")
        labels = {example.label for example in labelled}
        if len(labels) == 1 and isinstance(label := labels.pop(), str):
            notes.append(f'every example of {split} has the label "{label}": there is nothing to tell apart')
        if columns.id is not None:
            notes += describe_repeated_ids(split, ((example.id, example.label) for example in rows))
        return labelled

    def encode(self, example: TextExample, tokenizer: Tokenizer) -> list[Feature]:
        """Features of at most ``max_length`` tokens, one without ``stride``; IGNORE stands for an unknown label."""
        if self.pair != (example.second is not None):
            wanted, given = ("two texts", "one") if self.pair else ("one text", "two")
            raise usage_error(f"{self.name} is about {wanted}; example {example.id} has {given}.")
        labels, length = self._encode_label(example.label), self.max_length
        texts = (example.first, example.second)
        if self.stride:
            return assemble_windows(tokenizer, *texts, max_length=length, stride=self.stride, labels=labels)
        if self.both_orders and example.second is not None:
            rows = [assemble(tokenizer, *pair, max_length=length) for pair in (texts, (example.second, example.first))]
            return [replace(stack(rows, labels=labels), num_truncated=rows[0].num_truncated)]
        return [assemble(tokenizer, *texts, max_length=length, labels=labels)]

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """A fresh classifier or regressor."""
        if self.labels:
            weights = spread_weights(self.labels, self.class_weights)
            return {"class": SequenceClassification(encoder.hidden_size, len(self.labels), weights=weights)}
        return {"number": Regression(encoder.hidden_size)}

    def decode(
        self, example: TextExample, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]
    ) -> Prediction:
        """The most probable class, or the number on the scale of the files; windows speak with their mean."""
        cut = sum(feature.num_truncated for feature in features)
        if not self.labels:
            value = float(mean_output(outputs, "value"))
            return Prediction(value * self.numbers.unit + self.numbers.origin, num_truncated=cut)
        scores = _softmax(mean_output(outputs, "logits"))
        named = dict(zip(self.labels, scores.tolist(), strict=True))
        return Prediction(self.labels[int(scores.argmax())], named, cut)

    def describe(self, example: TextExample, prediction: Prediction) -> dict[str, Any]:
        """``id`` and ``label``; for a class also its ``probability`` and the ``scores`` of all.

        ``cut`` is there where tokens were cut off.
        """
        record: dict[str, Any] = {"id": example.id, "label": prediction.label}
        if isinstance(prediction.label, str):
            record["probability"] = round(max(prediction.scores.values()), 6)
        if prediction.scores:
            record["scores"] = {label: round(score, 6) for label, score in prediction.scores.items()}
        return {**record, "num_truncated": prediction.num_truncated} if prediction.num_truncated else record

    def spell(self, prediction: Prediction) -> str:
        """The answer as the files of the task write it; a number within its bounds, with three decimals."""
        if isinstance(prediction.label, str):
            return self.spellings[self.labels.index(prediction.label)] if self.spellings else prediction.label
        lowest, highest = self.numbers.lowest, self.numbers.highest
        assert isinstance(prediction.label, float)
        number = prediction.label if lowest is None else max(prediction.label, lowest)
        return f"{number if highest is None else min(number, highest):.3f}"

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        """``metric`` and ``also``, by name; every example needs its label."""
        gold: list[Any] = [example.label for example in examples]
        unknown = sum(label is None for label in gold)
        if unknown:
            raise data_error(f"{unknown:,} of {len(gold):,} examples have no label; they cannot be scored.")
        answers: list[Any] = [prediction.label for prediction in predictions]
        return {name: self._score(name, gold, answers) for name in (self.metric, *self.also)}

    def _score(self, name: str, gold: list[Any], answers: list[Any]) -> float:
        if name == "f1":
            return binary_f1(gold, answers, positive=self.labels[1])
        return _SCORES[name](gold, answers)

    def _example(self, cells: Cells, split: str) -> TextExample:
        return TextExample(cells.id, cells.first, cells.second, self._answer(cells, split))

    def _answer(self, cells: Cells, split: str) -> Answer | None:
        if cells.label is None or (not cells.label and self.files.splits[split].may_lack_labels):
            return None
        return self._read_label(cells.label, at_line(cells.path, cells.line))

    def _read_label(self, cell: str, where: str) -> Answer:
        return self._class(cell, where) if self.labels else self._number(cell, where)

    def _class(self, cell: str, where: str) -> str:
        if cell in self.spellings:
            return self.labels[self.spellings.index(cell)]
        if cell in self.labels:
            return cell
        spellings = self.spellings or self.labels
        known = ", ".join(spellings[:12]) + (", ..." if len(spellings) > 12 else "")
        hint = did_you_mean(cell, spellings)
        raise data_error(f'{where}: unknown label "{cell}". {self.name} knows: {known}.{hint}')

    def _number(self, cell: str, where: str) -> float:
        try:
            number = float(cell)
        except ValueError as error:
            raise data_error(f'{where}: "{cell}" is not a number.') from error
        lowest, highest = self.numbers.lowest, self.numbers.highest
        if not math.isfinite(number):
            raise data_error(f"{where}: {cell} is not a finite number.")
        if (lowest is not None and number < lowest) or (highest is not None and number > highest):
            raise data_error(f"{where}: {cell} is outside {lowest} to {highest}.")
        return number

    def _encode_label(self, label: Any) -> dict[str, Label]:
        if not self.labels:
            unit, origin = self.numbers.unit, self.numbers.origin
            return {"number": float(IGNORE) if label is None else (float(label) - origin) / unit}
        return {"class": IGNORE if label is None else self.labels.index(str(label))}

    def _open(self, path: Path) -> tuple[Table, Columns]:
        """New input and where its texts are; a ``.tsv`` is quoted as the task's own files are."""
        kind = path.name.removesuffix(".gz").rpartition(".")[2]
        if kind == "txt":
            form = Format(names=("first", "second")) if self.pair else Format(kind="lines", names=("first",))
            return Table(path, form), Columns(first="first", second="second" if self.pair else None)
        form = sniff(path)
        if kind == "tsv" and any(split.form and not split.form.quotes for split in self.files.splits.values()):
            form = replace(form, quotes=False)
        table = Table(path, form)
        return table, self._columns_in(table)

    def columns_of(self, path: Path) -> Columns:
        """As they are guessed for a table of the user's."""
        return guess_columns(Table(path), text=None, pair=None, label=None)

    def _columns_in(self, table: Table) -> Columns:
        """Those of the first split whose texts the table has; else those of train, which it will be told to have."""
        known = [replace(split.columns, label=None) for split in self.files.splits.values()]
        for columns in known:
            named = replace(columns, id=columns.id if columns.id in table.columns else None)
            if set(named.used()) <= set(table.columns):
                return named
        return known[0] if known else Columns(first="text", second="pair" if self.pair else None)


_SCORES: Mapping[str, Callable[[list[Any], list[Any]], float]] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}


def mean_output(outputs: Sequence[Mapping[str, NDArray[Any]]], name: str) -> NDArray[np.float64]:
    """What the windows of one example say, on average (Sun et al. 2019, section 5.3)."""
    return np.asarray(np.mean([output[name] for output in outputs], axis=0, dtype=np.float64))


def _lacks_text(example: TextExample) -> bool:
    return not example.first.strip() or (example.second is not None and not example.second.strip())


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - float(logits.max()))
    shares: NDArray[np.float64] = powers / powers.sum()
    return shares
