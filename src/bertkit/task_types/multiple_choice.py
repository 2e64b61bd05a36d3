"""Multiple choice: which of several texts fits a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertkit.batch import IGNORE, Feature
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.data.features import assemble, stack
from bertkit.metrics.bootstrap import Statistic, resample_classes
from bertkit.metrics.classification import accuracy
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.results import Result
from bertkit.task_files.choice_columns import Spelling, spell_place
from bertkit.task_types.base import (
    AnswerColumns,
    AnswerRecord,
    BaselineMethod,
    FileTask,
    refuse_unlabelled,
)
from bertkit.task_types.baselines import MOST_FREQUENT, character_ngrams, most_frequent
from bertkit.task_types.choice_reader import ChoiceExample, ChoiceReader
from bertkit.task_types.example_reports import ExampleReport, count_words, join_texts
from bertkit.task_types.probabilities import softmax


@dataclass(frozen=True, slots=True, repr=False)
class Choice(Result):
    """The most probable choice: its index from 0, its text, and the probability of each choice.

    ``num_truncated`` counts the tokens of all choices that the model has not read.
    """

    label: int
    text: str
    scores: tuple[float, ...]
    num_truncated: int = 0


@dataclass(frozen=True, kw_only=True)
class MultipleChoiceTask(FileTask[ChoiceExample, Choice]):
    """Which of several texts goes with a prompt; examples may have different numbers of choices.

    The columns of a split are the prompt (``first``), the beginning of all choices (``second``), the label and the id.
    ``choices`` are the columns of the choices, or the one column with JSON lists of them; without any they are found in
    each file by their names. ``spelling`` is how the files write which choice is right. ``pooling`` is what the head
    reads of the row of a choice: the encoder's pooled state, or the mean or the maximum of all states.
    """

    pipeline_tag = "multiple-choice"
    pipeline_method = "choose"
    score_names = ("accuracy",)
    head_fields = ("pooling",)
    answer_columns = AnswerColumns(columns=("id", "label", "choice", "probability"))

    metric: str = "accuracy"
    choices: tuple[str, ...] = ()
    spelling: Spelling = "number"
    pooling: Pooling = "cls"

    @property
    def reader(self) -> ChoiceReader:
        """What reads the files of the task, and new input."""
        return ChoiceReader(
            name=self.name, files=self.files, heldout=self.heldout, choices=self.choices, spelling=self.spelling
        )

    def encode(self, example: ChoiceExample, tokenizer: Tokenizer) -> list[Feature]:
        """One feature with a row ``[CLS] prompt [SEP] stem choice [SEP]`` for each choice."""
        prompt = tokenizer.encode(example.prompt)
        texts = [f"{example.stem} {choice}".strip() for choice in example.choices]
        rows = [assemble(tokenizer, prompt, text, max_length=self.max_length) for text in texts]
        return [stack(rows, labels={MultipleChoice.label: IGNORE if example.label is None else example.label})]

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """An untrained vector that scores the state of each row."""
        return {"choice": MultipleChoice(encoder.hidden_size, pooling=self.pooling)}

    def decode(self, example: ChoiceExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Choice:
        """The choice with the highest probability among those of the example."""
        (feature,), (output,) = features, outputs
        logits = output["logits"][: len(example.choices)].astype(np.float64)
        best = int(logits.argmax())
        return Choice(best, example.choices[best], tuple(softmax(logits).tolist()), feature.num_truncated)

    def baselines(self) -> Mapping[str, BaselineMethod[ChoiceExample, Choice]]:
        """The place that is right most often, and the choice whose characters are most similar to the prompt's."""
        return {MOST_FREQUENT: _predict_most_frequent, "TF-IDF similarity to the prompt": _predict_most_similar}

    def describe(self, example: ChoiceExample, prediction: Choice) -> AnswerRecord:
        """``id``, the ``label`` as the row writes it, its text, its ``probability`` and the ``scores`` of all."""
        place = prediction.label
        record = {
            "id": example.id,
            "label": example.keys[place] if example.keys else spell_place(place, example.choices, self.spelling),
            "choice": prediction.text,
            "probability": round(max(prediction.scores), 6),
            "scores": [round(score, 6) for score in prediction.scores],
        }
        return {**record, "num_truncated": prediction.num_truncated} if prediction.num_truncated else record

    def report(self, example: ChoiceExample, prediction: Choice) -> ExampleReport:
        """The right and the predicted choice as texts; the error of a wrong one is its probability."""
        assert example.label is not None
        probability = max(prediction.scores)
        texts = list(filter(None, (example.prompt, example.stem, *example.choices)))
        return ExampleReport(
            id=example.id,
            text=join_texts(texts),
            gold=example.choices[example.label],
            answer=prediction.text,
            error=0.0 if prediction.label == example.label else probability,
            confidence=probability,
            num_truncated=prediction.num_truncated,
            words=count_words(texts),
        )

    def resampling_statistic(
        self, examples: Sequence[ChoiceExample], predictions: Sequence[Choice], scores: Sequence[str]
    ) -> Statistic | None:
        """The accuracy, for a whole matrix of resamples at a time."""
        if list(scores) != ["accuracy"]:
            return None
        gold, answers = ([str(each.label) for each in side] for side in (examples, predictions))
        return resample_classes(gold, answers, scores)

    def score(self, examples: Iterable[ChoiceExample], predictions: Iterable[Choice]) -> dict[str, float]:
        """``accuracy``; every example needs its label."""
        gold = [example.label for example in examples]
        refuse_unlabelled(gold)
        answers = [prediction.label for prediction in predictions]
        return {"accuracy": accuracy(list(map(str, gold)), list(map(str, answers)))}


def _predict_most_frequent(train: Sequence[ChoiceExample], dev: Sequence[ChoiceExample]) -> list[Choice]:
    """The place that is right most often in train, or the last where there are fewer choices."""
    place = most_frequent([example.label or 0 for example in train])
    return [_choose(example, min(place, len(example.choices) - 1)) for example in dev]


def _predict_most_similar(train: Sequence[ChoiceExample], dev: Sequence[ChoiceExample]) -> list[Choice]:
    """The choice with the highest cosine to the prompt and the stem; of equal ones the first."""
    vectorizer = character_ngrams()
    vectorizer.fit([text for example in train for text in (_given(example), *example.choices)])
    prompts = vectorizer.transform([_given(example) for example in dev])
    choices = vectorizer.transform([choice for example in dev for choice in example.choices])
    owners = np.repeat(np.arange(len(dev)), [len(example.choices) for example in dev])
    cosines = np.asarray(prompts[owners].multiply(choices).sum(axis=1)).ravel()
    ends = np.cumsum([len(example.choices) for example in dev])
    chosen = zip(dev, (int(each.argmax()) for each in np.split(cosines, ends[:-1])), strict=True)
    return [_choose(example, best) for example, best in chosen]


def _choose(example: ChoiceExample, best: int) -> Choice:
    """The choice at a place, without doubt."""
    return Choice(best, example.choices[best], tuple(float(place == best) for place in range(len(example.choices))))


def _given(example: ChoiceExample) -> str:
    return f"{example.prompt} {example.stem}".strip() or "-"
