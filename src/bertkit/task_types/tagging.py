"""Sequence tagging: a tag for every word of a sentence, such as the names of people and places in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bertkit.batch import Feature
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.encoder_types.words import WordEncoder
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.metrics.bootstrap import Statistic, resample_entities
from bertkit.metrics.classification import ClassScore
from bertkit.metrics.entities import OUTSIDE, find_entities, score_entities
from bertkit.nn.mixture import MIXTURES, LayerMixture
from bertkit.objectives.crf_tagging import CrfTagging
from bertkit.objectives.feature_tagging import FeatureTagging
from bertkit.objectives.token_classification import TokenClassification
from bertkit.results import Result
from bertkit.task_files.labels import check_labels
from bertkit.task_types.base import AnswerColumns, AnswerRecord, BaselineMethod, FileTask
from bertkit.task_types.baselines import most_frequent
from bertkit.task_types.example_reports import ExampleReport
from bertkit.task_types.probabilities import softmax
from bertkit.task_types.tag_encoder import TagEncoder
from bertkit.task_types.tag_reader import TagExample, TagReader


class NamedEntity(NamedTuple):
    """An entity in a text: its type, its characters (``end`` exclusive), and the lowest probability among its words."""

    type: str
    text: str
    start: int
    end: int
    score: float

    def to_dict(self) -> dict[str, str | int | float]:
        """The fields as plain values."""
        return self._asdict()


@dataclass(frozen=True, slots=True, repr=False)
class TagPrediction(Result):
    """A tag for every word with its probability, and the ``entities`` of these tags.

    ``unread`` counts the words without a token; their tag is O.
    """

    label: tuple[str, ...]
    probabilities: tuple[float, ...]
    entities: tuple[NamedEntity, ...]
    unread: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values; an entity is a dictionary, as its own ``to_dict`` gives it."""
        return {**Result.to_dict(self), "entities": [each.to_dict() for each in self.entities]}


@dataclass(frozen=True, kw_only=True)
class TaggingTask(FileTask[TagExample, TagPrediction]):
    """A tag of ``labels``, which are IOB2, for every word; files may have IOB1, BIOES or BILOU.

    With ``context`` a sentence is read with as much of its document around it as ``max_length`` has room for. A
    sentence that is too long is read in windows; each word is predicted in the window where it has most context.

    With ``features``, a name in ``nn/mixture.py`` such as ``concat-last-four``, the encoder is frozen, and a
    BiLSTM over these of its layers predicts the tags (Table 7). With ``crf`` the tags of a sentence are predicted
    together, as by ELMo's tagger; BERT has no CRF.
    """

    pipeline_tag = "token-classification"
    pipeline_method = "tag"
    score_names = ("f1", "precision", "recall")
    head_fields = ("features", "crf")
    row_fields = ("max_length", "context", "features", "crf")  # the last two read the first token of each word alone
    answer_columns = AnswerColumns(columns=("id", "words", "tags"), further=("entities", "unread"), answer="tags")

    metric: str = "f1"
    context: bool = False
    features: str | None = None
    crf: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels(self.name, self.labels)
        if self.features is not None and self.crf:
            raise usage_error("task.features and task.crf cannot be combined: leave out one of them.")
        if self.features is not None and self.features not in MIXTURES:
            hint = did_you_mean(self.features, MIXTURES)
            raise usage_error(f'no features named "{self.features}".{hint} There are: {", ".join(MIXTURES)}.')

    @property
    def reader(self) -> TagReader:
        """What reads the files of the task, and new sentences."""
        return TagReader(
            name=self.name,
            files=self.files,
            heldout=self.heldout,
            labels=self.labels,
        )

    @property
    def encoder(self) -> TagEncoder:
        """What makes features of sentences."""
        return TagEncoder(
            labels=self.labels,
            max_length=self.max_length,
            context=self.context,
            target=self._head.label,
            marks_word_starts=self._head is not TokenClassification,
        )

    @property
    def _head(self) -> type[TokenClassification | FeatureTagging | CrfTagging]:
        if self.crf:
            return CrfTagging
        return TokenClassification if self.features is None else FeatureTagging

    def encode(self, example: TagExample, tokenizer: Tokenizer) -> list[Feature]:
        """``[CLS] sentence [SEP]``, with context or in windows."""
        return self.encoder.encode(example, tokenizer)

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """An untrained head for tags."""
        if self.crf:
            return {"tags": CrfTagging(encoder.hidden_size, self.labels)}
        if self.features is None:
            return {"tags": TokenClassification(encoder.hidden_size, len(self.labels))}
        if isinstance(encoder, WordEncoder):
            raise usage_error(f"{type(encoder).__name__} has no layers of one width: leave out task.features.")
        if self.features == "second-to-last" and encoder.num_layers < 2:
            raise usage_error("the model has one layer, and task.features is second-to-last: use last.")
        mixture = LayerMixture(self.features, encoder.num_layers, encoder.hidden_size)
        return {"tags": FeatureTagging(mixture, len(self.labels))}

    def decode(
        self, example: TagExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]
    ) -> TagPrediction:
        """The most probable tag of each word; a word without a token is O."""
        numbers = {place: number for number, place in enumerate(example.places)}
        tags, probabilities = [OUTSIDE] * len(example.words), [1.0] * len(example.words)
        num_predicted = 0
        for feature, output in zip(features, outputs, strict=True):
            assert feature.offsets is not None
            for token in np.flatnonzero(feature.offsets[:, 1]):
                logits = np.asarray(output["logits"][token], dtype=np.float64)
                number = numbers[tuple(feature.offsets[token].tolist())]
                tags[number] = self.labels[int(logits.argmax())]
                probabilities[number] = float(softmax(logits).max())
                num_predicted += 1
        entities = tuple(
            _entity(example, type, start, end, min(probabilities[start:end]))
            for type, start, end in find_entities(tags)
        )
        return TagPrediction(tuple(tags), tuple(probabilities), entities, len(tags) - num_predicted)

    def baselines(self) -> Mapping[str, BaselineMethod[TagExample, TagPrediction]]:
        """The most frequent tag for all words, and the most frequent tag of each word."""
        return {
            "most frequent tag": _predict_most_frequent_tag,
            "most frequent tag of each word": _predict_tag_of_word,
        }

    def describe(self, example: TagExample, prediction: TagPrediction) -> AnswerRecord:
        """``id``, ``words``, ``tags`` and ``entities``; ``unread`` if words have no token."""
        entities = [{**entity._asdict(), "score": round(entity.score, 6)} for entity in prediction.entities]
        record = {"id": example.id, "words": example.words, "tags": prediction.label, "entities": entities}
        return record | ({"unread": prediction.unread} if prediction.unread else {})

    def score(self, examples: Iterable[TagExample], predictions: Iterable[TagPrediction]) -> dict[str, float]:
        """``f1``, ``precision`` and ``recall`` of entities."""
        overall, _ = score_entities(_gold_tags(examples), [prediction.label for prediction in predictions])
        return {"f1": overall.f1, "precision": overall.precision, "recall": overall.recall}

    def resampling_statistic(
        self, examples: Sequence[TagExample], predictions: Sequence[TagPrediction], scores: Sequence[str]
    ) -> Statistic | None:
        """The scores from counts of entities, for a whole matrix of resamples at a time."""
        if not set(self.score_names).issuperset(scores):
            return None
        return resample_entities(list(_gold_tags(examples)), [each.label for each in predictions], scores)

    def report(self, example: TagExample, prediction: TagPrediction) -> ExampleReport:
        """The sentence alone, without its document."""
        return replace(super().report(example, prediction), text=example.first, words=len(example.words))

    def score_parts(self, examples: Iterable[TagExample], predictions: Iterable[TagPrediction]) -> list[ClassScore]:
        """Precision, recall and F1 of each type of entity."""
        return score_entities(_gold_tags(examples), [prediction.label for prediction in predictions])[1]


def _predict_most_frequent_tag(train: Sequence[TagExample], dev: Sequence[TagExample]) -> list[TagPrediction]:
    """The most frequent tag of train for every word, which is O in most data."""
    return _predict_by_word({}, train, dev)


def _predict_tag_of_word(train: Sequence[TagExample], dev: Sequence[TagExample]) -> list[TagPrediction]:
    """The tag that each word has most often in train; capitals count: "Bush" is a name more often than "bush"."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        for word, tag in zip(example.words, example.label or (), strict=True):
            counts[word][tag] += 1
    return _predict_by_word({word: found.most_common(1)[0][0] for word, found in counts.items()}, train, dev)


def _predict_by_word(
    tags: Mapping[str, str], train: Sequence[TagExample], dev: Sequence[TagExample]
) -> list[TagPrediction]:
    """The tags of the words that have one, and the most frequent tag of train for all others, without probabilities."""
    unknown = most_frequent([tag for example in train for tag in example.label or ()])
    found = [tuple(tags.get(word, unknown) for word in example.words) for example in dev]
    return [TagPrediction(each, (1.0,) * len(each), ()) for each in found]


def _gold_tags(examples: Iterable[TagExample]) -> Iterator[tuple[str, ...]]:
    for example in examples:
        if example.label is None:
            raise data_error(f"sentence {example.id} has no tags; it cannot be scored.")
        yield example.label


def _entity(example: TagExample, type: str, start: int, end: int, score: float) -> NamedEntity:
    first, last = example.places[start][0], example.places[end - 1][1]
    return NamedEntity(type, example.first[first:last], first, last, score)
