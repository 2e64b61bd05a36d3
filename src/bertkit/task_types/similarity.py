"""The similarity of two texts as the cosine of their vectors: it makes a model of embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from bertkit.batch import Feature, Label
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.data.features import assemble, stack
from bertkit.errors import usage_error
from bertkit.metrics.bootstrap import Statistic, resample_areas, resample_numbers
from bertkit.metrics.ranking import roc_auc
from bertkit.metrics.regression import pearson, spearman
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives.contrastive import ContrastiveSimilarity
from bertkit.ranges import Range
from bertkit.task_files.columns import find_score
from bertkit.task_types.base import AnswerRecord, BaselineMethod, FileTask, refuse_unlabelled
from bertkit.task_types.baselines import predict_cosines
from bertkit.task_types.example_reports import ExampleReport
from bertkit.task_types.regression import Numbers, RegressionTask, as_label, read_number
from bertkit.task_types.text_reader import TextExample, TextLabel, TextReader
from bertkit.task_types.text_task import Prediction, as_numbers, count_truncated, prediction_record, predictions_of

TFIDF_COSINE = "TF-IDF cosine"

_SCORES: Mapping[str, Mapping[str, Callable[[Sequence[float], Sequence[float]], float]]] = {
    "spearman": {"spearman": spearman, "pearson": pearson},
    "roc_auc": {"roc_auc": roc_auc},
}
"""The scores of a task by its metric."""

_FARTHEST = 1000
"""Rows between a first text and another second text for it: a text may belong to many that follow one another."""

Training = Literal["scores", "pairs"]
"""``scores``: the cosine is fitted to a score of each pair. ``pairs``: all pairs belong together, and the second texts
of the other pairs in a batch are negatives."""


@dataclass(frozen=True, kw_only=True)
class PairReader(TextReader):
    """Reads pairs of texts; ``training`` is that of the task."""

    training: Training

    def examples(self, split: str) -> list[TextExample]:
        """The examples of a split; pairs that all belong together get as many negatives, but those to train on."""
        found = super().examples(split)
        return found if self.heldout and split in ("train", "dev") else self._prepare(found, split)

    def split_train(self) -> tuple[list[TextExample], list[TextExample]]:
        """(train, dev): the same where dev is held out of train."""
        train, dev = super().split_train()
        return self._prepare(train, "train"), self._prepare(dev, "dev")

    def _prepare(self, examples: list[TextExample], split: str) -> list[TextExample]:
        """Pairs that all belong together, with as many negatives, unless they are trained on.

        A usage error if pairs to train on have scores, as those of a low score would count as pairs that belong
        together.
        """
        together = self.training == "pairs" and all(each.label == 1.0 for each in examples)
        if self.training == "pairs" and split == "train" and not together:
            raise usage_error(
                "task.training is pairs, for which all pairs belong together, and those to train on have a score each. "
                "Leave task.training out, or train on a table without that column."
            )
        return add_negatives(examples) if together and split != "train" else examples


@dataclass(frozen=True, kw_only=True)
class SimilarityTask(FileTask[TextExample, Prediction]):
    """How similar two texts are: the cosine of their vectors, each made without the other by ``pooling``.

    Scores are mapped to (score - origin) / unit of ``numbers``, which should be from 0 to 1. With ``training="pairs"``
    rows have no score, ``temperature`` divides the cosines, and a dev set without scores gets a negative for each pair:
    its first text with the second text of another pair.
    """

    pipeline_tag = "sentence-similarity"
    pipeline_method = "similarity"
    score_names = tuple(_SCORES)
    head_fields = ("pooling",)

    metric: str = "spearman"
    pooling: Pooling = "mean"
    training: Training = "scores"
    temperature: Annotated[float, Range(0, 100, above=True)] = 0.05
    numbers: Numbers = field(default_factory=Numbers)

    @property
    def reader(self) -> PairReader:
        """What reads the files of the task, and new input."""
        return PairReader(
            name=self.name,
            files=self.files,
            heldout=self.heldout,
            pair=True,
            read_label=lambda cell, where: read_number(cell, where, self.numbers),
            unlabelled=1.0 if self.training == "pairs" else None,
            training=self.training,
        )

    def with_files(self, **files: str | Path | Sequence[str | Path]) -> Self:
        """The same task with other files for some splits; a column of scores in them is read, and ranked."""
        task = super().with_files(**files)
        for split in files:
            bound = task.files.splits[split]
            table = task.files.table(Path(bound.files[0]))
            score = find_score(table, [name for name in table.columns if name not in bound.columns.used()])
            if bound.columns.label is None and score is not None:
                scored = replace(bound, columns=replace(bound.columns, label=score))
                splits = {**task.files.splits, split: scored}
                task = replace(task, metric="spearman", files=replace(task.files, splits=splits))
        return task

    def encode(self, example: TextExample, tokenizer: Tokenizer) -> list[Feature]:
        """One feature with a row of at most ``max_length`` tokens for each text."""
        if example.second is None:
            raise usage_error(f"an example of {self.name} is two texts; example {example.id} has one.")
        label: Label = as_label(self._scale(example.label))
        rows = [assemble(tokenizer, text, max_length=self.max_length) for text in (example.first, example.second)]
        return [stack(rows, labels={ContrastiveSimilarity.label: label})]

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """The cosine, which has no weights."""
        if self.pooling == "cls" and encoder.causal:
            raise usage_error(
                "pooling is cls, and the first token of a left-to-right model has read no other: use mean."
            )
        temperature = self.temperature if self.training == "pairs" else None
        return {"similarity": ContrastiveSimilarity(pooling=self.pooling, temperature=temperature)}

    def decode(self, example: TextExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Prediction:
        """The cosine, from -1 to 1."""
        (output,) = outputs
        return Prediction(float(output["cosine"]), num_truncated=count_truncated(features))

    def baselines(self) -> Mapping[str, BaselineMethod[TextExample, Prediction]]:
        """The cosine of TF-IDF weights of character n-grams, which are fitted on the texts of train."""
        return {TFIDF_COSINE: predictions_of(predict_cosines)}

    def describe(self, example: TextExample, prediction: Prediction) -> AnswerRecord:
        """``id`` and ``label``, the cosine."""
        return prediction_record(example, prediction)

    def report(self, example: TextExample, prediction: Prediction) -> ExampleReport:
        """The gold score and the cosine; the error is their distance on the scale of the cosine."""
        label = self._scale(example.label)
        assert label is not None
        (cosine,) = as_numbers([prediction.label])
        return replace(super().report(example, prediction), error=abs(cosine - label))

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Prediction]) -> dict[str, float]:
        """Spearman's and Pearson's correlation of the cosines with the gold scores, or the area under the ROC curve."""
        labels = [example.label for example in examples]
        refuse_unlabelled(labels)
        gold, answers = as_numbers(labels), as_numbers([prediction.label for prediction in predictions])
        return {name: compute(gold, answers) for name, compute in _SCORES[self.metric].items()}

    def resampling_statistic(
        self, examples: Sequence[TextExample], predictions: Sequence[Prediction], scores: Sequence[str]
    ) -> Statistic | None:
        """The correlations or the area, for a whole matrix of resamples at a time."""
        if not _SCORES[self.metric].keys() >= set(scores):
            return None
        gold = as_numbers([example.label for example in examples])
        answers = as_numbers([prediction.label for prediction in predictions])
        return resample_numbers(gold, answers, scores) if self.metric == "spearman" else resample_areas(gold, answers)

    def _scale(self, label: TextLabel | None) -> float | None:
        """A gold score as a cosine; None if it is not known."""
        if label is None:
            return None
        (number,) = as_numbers([label])
        return (number - self.numbers.origin) / self.numbers.unit


def add_negatives(pairs: Sequence[TextExample]) -> list[TextExample]:
    """Each pair, and after it its first text with the next second text that is not one of its own, as 0."""
    together = {(pair.first, pair.second) for pair in pairs}
    found = []
    for place, pair in enumerate(pairs):
        found.append(pair)
        following = (pairs[(place + step) % len(pairs)].second for step in range(1, min(len(pairs), _FARTHEST)))
        other = next((second for second in following if (pair.first, second) not in together), None)
        if other is not None:
            found.append(replace(pair, id=f"{pair.id}-other", second=other, label=0.0))
    return found


def as_similarity(task: FileTask) -> SimilarityTask:
    """The task of the same scored pairs whose model has a vector for each text."""
    if not isinstance(task, RegressionTask) or not task.pair:
        raise usage_error(f"{task.name} has no scores of pairs of texts: --kind similarity needs them.")
    lowest, highest = task.numbers.lowest, task.numbers.highest
    numbers = task.numbers if lowest is None or highest is None else Numbers(origin=lowest, unit=highest - lowest)
    return SimilarityTask(
        name=task.name,
        files=task.files,
        heldout=task.heldout,
        max_length=task.max_length,
        about=task.about,
        numbers=numbers,
    )
