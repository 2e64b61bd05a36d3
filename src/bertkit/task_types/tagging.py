"""A tag for every word of a sentence: the record that such tasks are values of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Feature, Token
from bertkit.contracts import Encoder, Objective, Tokenizer
from bertkit.encoder_types import WordEncoder
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.formats.lines import at_line, open_lines
from bertkit.metrics.classification import ClassScore
from bertkit.metrics.entities import SCHEMES, convert, find_entities, score_entities
from bertkit.nn.mixture import MIXTURES, Mixture
from bertkit.objectives.crf_tagging import CrfTagging
from bertkit.objectives.feature_tagging import WORD_STARTS, FeatureTagging
from bertkit.objectives.token_classification import TokenClassification
from bertkit.task_types.base import FileTask
from bertkit.task_types.conll_files import COLUMNS, Sentence, read_sentences
from bertkit.task_types.held_out import describe_overlap, hold_out
from bertkit.task_types.task_files import Columns
from bertkit.task_types.windows import owners, window_starts

_WORD = re.compile(r"\w+|[^\w\s]")
_OUTSIDE = "O"


@dataclass(frozen=True)
class TagExample:
    """A sentence; ``label`` are its tags in IOB2, None if unknown. ``before`` and ``after`` are words around it.

    ``source`` is the text that the words were cut from; without one they stand with spaces between them.
    """

    id: str
    words: tuple[str, ...]
    label: tuple[str, ...] | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    source: str | None = None
    second: ClassVar[None] = None

    @property
    def first(self) -> str:
        """The text of the sentence."""
        return " ".join(self.words) if self.source is None else self.source

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The characters of each word in the text."""
        found, end = [], 0
        for word in self.words:
            start = self.first.index(word, end)
            end = start + len(word)
            found.append((start, end))
        return found


class NamedEntity(NamedTuple):
    """A part of a text that names something, its characters, and the lowest probability among its words."""

    type: str
    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class TagPrediction:
    """A tag for every word with its probability; the ``entities`` they make. ``unread`` words have no token: O."""

    label: tuple[str, ...]
    probabilities: tuple[float, ...]
    entities: tuple[NamedEntity, ...]
    unread: int = 0


@dataclass(frozen=True, kw_only=True)
class TaggingTask(FileTask):
    """A tag of ``labels``, which are IOB2, for every word; files may have IOB1, BIOES or BILOU.

    With ``context`` a sentence is read with as much of its document around it as ``max_length`` has room for. One that
    is too long is read in windows, each word where it has most context.

    With ``features``, a name in ``nn/mixture.py`` such as ``concat-last-four``, the encoder is not trained: a BiLSTM
    over those of its layers tells the tags (Table 7). With ``crf`` the tags of a sentence are told together, as by the
    tagger of ELMo; BERT has no CRF.
    """

    shape: ClassVar[str] = "tags"

    metric: str = "f1"
    context: bool = False
    features: str | None = None
    crf: bool = False

    def __post_init__(self) -> None:
        if self.features is not None and self.crf:
            raise usage_error("features are told without a CRF: leave out task.features or task.crf.")
        if self.features is not None and self.features not in MIXTURES:
            hint = did_you_mean(self.features, MIXTURES)
            raise usage_error(f'no features named "{self.features}".{hint} There are: {", ".join(MIXTURES)}.')

    def rows(self, split: str) -> Iterator[TagExample]:
        """Every sentence in the files of a split."""
        for path in self.files.paths(self.name, split):
            yield from self._read(path, tagged=True)

    def columns_of(self, path: Path) -> Columns:
        """The first and the last."""
        return COLUMNS

    def read(self, path: Path) -> Iterator[TagExample]:
        """Sentences to be answered: columns whose first is the word, or in a ``.txt`` a text a line."""
        if not path.name.removesuffix(".gz").endswith(".txt"):
            yield from self._read(path, tagged=False)
            return
        with open_lines(path) as lines:
            for number, line in enumerate(lines, start=1):
                yield self.read_line(str(number), line.rstrip("\r\n"))

    def read_line(self, name: str, line: str) -> TagExample:
        """A text, cut into words at spaces and around punctuation."""
        return TagExample(name, tuple(_WORD.findall(line)), source=line)

    def notes(self) -> list[str]:
        """What a person should know about train and dev before trusting a score, one sentence each."""
        found = {split: self.labelled(split) for split in ("train", "dev") if split in self.files.splits}
        notes = [note for split in found for note in self._describe_faults(split)]
        if self.heldout:
            held = len(hold_out(found["train"], self.heldout)[1])
            notes.append(f"no dev file: {held:,} of {len(found['train']):,} sentences are held out as dev")
        return notes + describe_overlap(found.get("train", []), found.get("dev", []))

    def _describe_faults(self, split: str) -> list[str]:
        paths = self.files.paths(self.name, split)
        sentences = [sentence for path in paths for sentence in read_sentences(path)]
        notes = []
        if ill_formed := count_ill_formed(sentences):
            notes.append(f"{ill_formed:,} tags of {split} are ill-formed, and are read as conlleval reads them")
        if unread := sum(not _is_readable(word) for sentence in sentences for word in sentence.words):
            notes.append(f"{unread:,} words of {split} have no character that is read, and are answered O")
        return notes

    def _read(self, path: Path, *, tagged: bool) -> Iterator[TagExample]:
        for _, members in groupby(read_sentences(path, tagged=tagged), key=lambda sentence: sentence.document):
            document = list(members)
            words = [word for sentence in document for word in sentence.words]
            start = 0
            for sentence in document:
                end = start + len(sentence.words)
                room = self.max_length if self.context else 0
                yield TagExample(
                    str(sentence.line),
                    sentence.words,
                    self._tags(sentence, path) if tagged else None,
                    tuple(words[max(0, start - room) : start]),
                    tuple(words[end : end + room]),
                )
                start = end

    def _tags(self, sentence: Sentence, path: Path) -> tuple[str, ...]:
        tags = tuple(convert(sentence.tags, "iob2"))
        for place, tag in enumerate(tags):
            if tag not in self.labels:
                known = ", ".join(self.labels)
                where, hint = at_line(path, sentence.line + place), did_you_mean(tag, self.labels)
                raise data_error(f'{where}: unknown tag "{tag}". {self.name} knows: {known}.{hint}')
        return tags

    def encode(self, example: TagExample, tokenizer: Tokenizer) -> list[Feature]:
        """``[CLS] sentence [SEP]``, with context or in windows; the offsets of tokens that begin no word are (0, 0)."""
        if self.max_length < 3:
            raise usage_error(f"max_length {self.max_length} has no room for a word.")
        pieces = _cut(example.words, tokenizer)
        ids = np.array([piece for word in pieces for piece in word], dtype=np.int64)
        offsets = np.zeros((len(ids), 2), dtype=np.int64)
        labels = np.full(len(ids), IGNORE, dtype=np.int64)
        place = 0
        for number, word in enumerate(pieces):
            if word:
                offsets[place] = example.places[number]
                labels[place] = IGNORE if example.label is None else self.labels.index(example.label[number])
            place += len(word)
        room = self.max_length - 2
        if len(ids) <= room:
            before, after = self._around(example, room - len(ids), tokenizer)
            return [self._feature(tokenizer, ids, offsets, labels, before, after)]
        step = max(1, room // 2)
        owner = owners(len(ids), room, step)
        features = []
        for window, start in enumerate(window_starts(len(ids), room, step)):
            part = slice(start, start + room)
            mine = owner[part] == window
            features.append(
                self._feature(
                    tokenizer,
                    ids[part],
                    np.where(mine[:, None], offsets[part], 0),
                    np.where(mine, labels[part], IGNORE),
                )
            )
        return features

    def _around(self, example: TagExample, room: int, tokenizer: Tokenizer) -> tuple[list[Token], list[Token]]:
        """Pieces before and after the sentence, as many on both sides as there are and ``room`` allows."""
        before = [piece for word in _cut(example.before, tokenizer) for piece in word]
        after = [piece for word in _cut(example.after, tokenizer) for piece in word]
        left = min(len(before), max(room // 2, room - len(after)))
        return before[len(before) - left :], after[: room - left]

    def _feature(
        self,
        tokenizer: Tokenizer,
        ids: NDArray[np.int64],
        offsets: NDArray[np.int64],
        labels: NDArray[np.int64],
        before: Sequence[Token] = (),
        after: Sequence[Token] = (),
    ) -> Feature:
        input_ids = np.array([tokenizer.start_id, *before, *ids, *after, tokenizer.end_id], dtype=np.int64)
        around = (len(before) + 1, len(after) + 1)
        offsets = np.pad(offsets, (around, (0, 0)))
        labels = np.pad(labels, around, constant_values=IGNORE)
        starts = (offsets[:, 1] > 0).astype(np.int64)
        head = self._head
        return Feature(
            input_ids=input_ids,
            segment_ids=np.zeros(len(input_ids), dtype=np.int64),
            labels={TokenClassification.label: labels}
            if head is TokenClassification
            else {head.label: labels, WORD_STARTS: starts},
            offsets=offsets,
        )

    @property
    def _head(self) -> type[TokenClassification | FeatureTagging | CrfTagging]:
        """What tells the tags."""
        if self.crf:
            return CrfTagging
        return TokenClassification if self.features is None else FeatureTagging

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """A fresh head for tags."""
        if self.crf:
            return {"tags": CrfTagging(encoder.hidden_size, self.labels)}
        if self.features is None:
            return {"tags": TokenClassification(encoder.hidden_size, len(self.labels))}
        if isinstance(encoder, WordEncoder):
            raise usage_error(f"{type(encoder).__name__} has no layers of one width: leave out task.features.")
        mixture = Mixture(self.features, encoder.num_layers, encoder.hidden_size)
        return {"tags": FeatureTagging(mixture, len(self.labels))}

    def decode(
        self, example: TagExample, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]
    ) -> TagPrediction:
        """The most probable tag of each word; a word without a token is O."""
        numbers = {place: number for number, place in enumerate(example.places)}
        tags, shares = [_OUTSIDE] * len(example.words), [1.0] * len(example.words)
        read = 0
        for feature, output in zip(features, outputs, strict=True):
            assert feature.offsets is not None
            for token in np.flatnonzero(feature.offsets[:, 1]):
                logits = np.asarray(output["logits"][token], dtype=np.float64)
                number = numbers[tuple(feature.offsets[token].tolist())]
                tags[number] = self.labels[int(logits.argmax())]
                shares[number] = float(1.0 / np.exp(logits - logits.max()).sum())
                read += 1
        entities = tuple(
            _name(example, type, start, end, min(shares[start:end])) for type, start, end in find_entities(tags)
        )
        return TagPrediction(tuple(tags), tuple(shares), entities, len(tags) - read)

    def describe(self, example: TagExample, prediction: TagPrediction) -> dict[str, Any]:
        """``id``, ``words``, ``tags`` and ``entities``; ``unread`` where words have no token."""
        entities = [{**entity._asdict(), "score": round(entity.score, 6)} for entity in prediction.entities]
        record = {"id": example.id, "words": example.words, "tags": prediction.label, "entities": entities}
        return record | ({"unread": prediction.unread} if prediction.unread else {})

    def score(self, examples: Iterable[TagExample], predictions: Iterable[TagPrediction]) -> dict[str, float]:
        """``f1``, ``precision`` and ``recall`` of entities."""
        overall, _ = score_entities(_gold_tags(examples), [prediction.label for prediction in predictions])
        return {"f1": overall.f1, "precision": overall.precision, "recall": overall.recall}

    def score_parts(self, examples: Iterable[TagExample], predictions: Iterable[TagPrediction]) -> list[ClassScore]:
        """The same of each type of entity."""
        return score_entities(_gold_tags(examples), [prediction.label for prediction in predictions])[1]


def count_ill_formed(sentences: Sequence[Sentence]) -> int:
    """Tags that are not as the scheme writes them that fits most."""
    tags = [sentence.tags for sentence in sentences]
    return min(
        sum(told != meant for each in tags for told, meant in zip(each, convert(each, scheme), strict=True))
        for scheme in SCHEMES
    )


def _cut(words: Iterable[str], tokenizer: Tokenizer) -> list[list[Token]]:
    """The pieces of each word with a space before it, without which byte pairs would take it for the end of another."""
    return [tokens.ids for tokens in tokenizer.encode_batch([f" {word}" for word in words])]


def _gold_tags(examples: Iterable[TagExample]) -> Iterator[tuple[str, ...]]:
    for example in examples:
        if example.label is None:
            raise data_error(f"sentence {example.id} has no tags; it cannot be scored.")
        yield example.label


def _is_readable(word: str) -> bool:
    """Control characters, spaces and U+FFFD alone give no token."""
    return any(each.isprintable() and not each.isspace() and each != "\ufffd" for each in word)


def _name(example: TagExample, type: str, start: int, end: int, score: float) -> NamedEntity:
    first, last = example.places[start][0], example.places[end - 1][1]
    return NamedEntity(type, example.first[first:last], first, last, score)
