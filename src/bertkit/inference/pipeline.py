"""A model folder as something to ask: fill in words, tell classes, predict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Encoder, Objective, TokenEmbedding
from bertkit.encoder_types import context_of
from bertkit.errors import usage_error
from bertkit.inference.ensemble import Ensemble
from bertkit.inference.fill import Filling, fill
from bertkit.inference.predict import stream
from bertkit.model import Model
from bertkit.task_types import (
    Choice,
    FileTask,
    MultiLabelTask,
    MultipleChoiceTask,
    NamedEntity,
    Prediction,
    QuestionAnsweringTask,
    SpanExample,
    SpanPrediction,
    TagExample,
    TaggingTask,
    TextClassificationTask,
    TextExample,
    from_record,
    make_example,
)
from bertkit.task_types.pretraining import PretrainingTask
from bertkit.training.precision import default_device

Text = str | tuple[str, str]
"""One text, or the two of a pair."""

_LONGEST_TEXT = 512
"""Tokens that `fill` reads at most if the encoder itself has no limit."""

_LABELS_NOT_NAMED = ("LABEL_0", "LABEL_1")
"""What Hugging Face calls the classes of a ``config.json`` that names none: it does not write its default down."""

Texts = list[str] | list[tuple[str, str]] | list[Text]


def load(path: Path | str, *more: Path | str) -> Pipeline:
    """The model in a folder: a run of bertkit, what it saved, or a BERT in Hugging Face's format.

    With ``more`` folders, the models answer together: the mean of what their heads say.
    """
    return Pipeline(*map(ModelFolder.open, (path, *more)))


class Pipeline:
    """Asks one model. The heads are read when they are first needed; the text is cut as in training.

    ``folder`` is the model's; ``task`` is what the model was fine-tuned for. ``cut`` counts the examples so far that
    were too long for the model to read to their end. Of several folders the first is ``folder``, and its task, with its
    thresholds, is that of all.
    """

    def __init__(self, model: ModelFolder, *others: ModelFolder) -> None:
        self.folder = model.path
        self.folders = tuple(each.path for each in (model, *others))
        self._models = (model, *others)
        self.tokenizer = model.tokenizer
        self.num_truncated = 0
        for other in others:
            self._require_same(Pipeline(other))

    def fill(self, text: str, top_k: int = 5) -> list[list[Filling]]:
        """For each [MASK] of the text, the likeliest words."""
        filler = self._filler
        longest = getattr(self._models[0].config, "max_positions", _LONGEST_TEXT)
        return fill(filler, self.tokenizer, text, top_k=top_k, max_length=longest)

    @overload
    def classify(self, texts: str, pair: str | None = None) -> Prediction: ...

    @overload
    def classify(self, texts: Texts, pair: None = None) -> list[Prediction]: ...

    def classify(self, texts: str | Texts, pair: str | None = None) -> Prediction | list[Prediction]:
        """The class of a text (or of a text and its ``pair``), with the probability of every class.

        A list of texts, or of pairs as tuples, gives a list.
        """
        if not isinstance(self.task, TextClassificationTask) or not self.task.labels:
            raise usage_error(f"{self.folder} is for {self.task.name} and tells no class of a text: use predict.")
        if isinstance(texts, str):
            return self.predict([texts if pair is None else (texts, pair)])[0]
        return self.predict(texts)

    def answer(self, question: str, context: str) -> SpanPrediction:
        """The passage of the context that answers the question, "" if it has none."""
        if not isinstance(self.task, QuestionAnsweringTask):
            raise usage_error(f"{self.folder} is for {self.task.name} and answers no question: use predict.")
        (prediction,) = self.stream([SpanExample("1", question, context)])
        assert isinstance(prediction, SpanPrediction)
        return prediction

    def choose(self, prompt: str, choices: Sequence[str]) -> Choice:
        """The choice that goes best with the prompt: its ``label`` (the place from 0), ``text``, and all ``scores``."""
        if not isinstance(self.task, MultipleChoiceTask):
            raise usage_error(f"{self.folder} is for {self.task.name} and does not choose: use predict.")
        (chosen,) = self.stream([make_example("0", prompt, choices, where="choose")])
        assert isinstance(chosen, Choice)
        return chosen

    def tag(self, text: str | Sequence[str]) -> list[NamedEntity]:
        """The entities that a text, or a list of words, names; places are those in the words with spaces between."""
        if not isinstance(self.task, TaggingTask):
            raise usage_error(f"{self.folder} is for {self.task.name} and tags no words: use predict.")
        example = self.task.read_line("1", text) if isinstance(text, str) else TagExample("1", tuple(text))
        (prediction,) = self.stream([example])
        return list(prediction.entities)

    def predict(self, texts: Sequence[Text]) -> list[Prediction]:
        """The class or the number of each text, or of each pair."""
        return list(self.stream(_example(place, text) for place, text in enumerate(texts)))

    def stream(self, examples: Iterable[Any], *, batch_size: int = 64) -> Iterator[Any]:
        """Answers to examples without end, such as ``task.read`` gives, one by one and in order."""
        for prediction in stream(self._answerer, self.task, examples, self.tokenizer, batch_size=batch_size):
            self.num_truncated += getattr(prediction, "num_truncated", 0) > 0
            yield prediction

    @cached_property
    def task(self) -> FileTask:
        """The task that the folder names; for a model of another maker, one made of the labels it names.

        Whether such a classifier wants pairs, or a model for questions can say that there is no answer, is not written
        anywhere: ``replace(task, pair=True)`` and ``replace(task, null=True)`` say so.
        """
        metadata = self._models[0].metadata
        if "task" in metadata:
            return from_record(metadata["task"])
        task = _foreign_task(self.folder.name, metadata)
        if task is None:
            raise usage_error(
                f"{self.folder} is not fine-tuned for a task. First: bertkit finetune TASK --model {self.folder} -o RUN"
            )
        positions = self._models[0].config.max_positions
        longest = min(task.max_length, positions) if isinstance(task, QuestionAnsweringTask) else positions
        return replace(task, max_length=longest)

    @cached_property
    def _filler(self) -> Model:
        if "task" in self._models[0].metadata:
            raise usage_error(f"{self.folder} is fine-tuned for {self.task.name}; [MASK] needs a pre-trained model.")
        return self._models[0].load_model(_masked_words).to(default_device())

    @cached_property
    def _answerer(self) -> Model | Ensemble:
        models = [model.load_model(self.task.objectives).to(default_device()) for model in self._models]
        return models[0] if len(models) == 1 else Ensemble(models)

    def _require_same(self, other: Pipeline) -> None:
        """What answers together reads the same tokens and is asked the same."""
        if other.tokenizer.fingerprint != self.tokenizer.fingerprint:
            raise usage_error(f"{other.folder} has another vocabulary than {self.folder}; they cannot answer together.")
        if (other.task.shape, other.task.labels) != (self.task.shape, self.task.labels):
            raise usage_error(
                f"{other.folder} is for {other.task.name} and {self.folder} for {self.task.name}; "
                "they cannot answer together."
            )


def _foreign_task(name: str, metadata: Mapping[str, Any]) -> FileTask | None:
    """What a model of another maker is for, by its architecture; None where that is no task."""
    labels = tuple(metadata.get("labels", ())) or _LABELS_NOT_NAMED
    match [
        architecture.removeprefix("Roberta").removeprefix("Bert") for architecture in metadata.get("architectures", ())
    ]:
        case ["ForQuestionAnswering"]:
            return QuestionAnsweringTask(name=name)
        case ["ForMultipleChoice"]:
            return MultipleChoiceTask(name=name)
        case ["ForTokenClassification"]:
            return TaggingTask(name=name, labels=labels)
        case ["ForSequenceClassification"] if metadata.get("several_labels"):
            return MultiLabelTask(name=name, labels=labels)
        case ["ForSequenceClassification"]:
            return TextClassificationTask(name=name, metric="accuracy", labels=labels if len(labels) > 1 else ())
    return None


def _example(place: int, text: Text) -> TextExample:
    first, second = (text, None) if isinstance(text, str) else text
    return TextExample(str(place), first, second)


def _masked_words(encoder: Encoder) -> dict[str, Objective]:
    if not isinstance(encoder, TokenEmbedding) or context_of(encoder.config) != "bidirectional":
        raise usage_error("this model has no masked-LM head; fill needs a BERT or RoBERTa pre-trained with mlm.")
    return PretrainingTask(objectives=("mlm",)).build_objectives(encoder)
