"""A model folder with methods for single inputs: fill in words, classify, answer, choose, tag, predict, embed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bertkit.checkpoint.model_folder import CONFIG, ModelFolder, read_objectives
from bertkit.contracts import Encoder, Objective, has_token_embedding
from bertkit.encoder_types.settings import context_of
from bertkit.errors import BertkitError, UnsupportedError, data_error, list_names, usage_error
from bertkit.formats.memory_tables import (
    TEMPORARY,
    errors_about,
    is_memory_table,
    require_one_table,
    write_memory_table,
)
from bertkit.inference.encoder_pipeline import EncoderPipeline
from bertkit.inference.ensemble import Ensemble
from bertkit.inference.fill import Filling, fill
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.inference.predict import BATCH_SIZE, run_examples, stream
from bertkit.inference.texts import Text, check_text, check_texts, check_words
from bertkit.machine.device import use_device
from bertkit.model import Model
from bertkit.named_objectives import build_objectives
from bertkit.options.inputs import DataTable
from bertkit.options.job import Device, InferencePrecision
from bertkit.results import Results
from bertkit.task_types import (
    Choice,
    FileTask,
    NamedEntity,
    Prediction,
    RegressionTask,
    SpanExample,
    SpanPrediction,
    TagExample,
    TextExample,
    TextTask,
    make_example,
)
from bertkit.task_types.text_reader import TextReader
from bertkit.task_types.text_task import count_truncated, mean_output
from bertkit.user_tables.input_columns import choose_columns

_METHODS_OF_ONE_INPUT = ("answer", "choose")
"""Methods of tasks whose inputs are more than texts or pairs; several of them are rows of a table."""

Texts = list[str] | list[tuple[str, str]] | list[Text] | DataTable
ColumnName = str | int
"""A column of a DataFrame may have a number for a name."""


def load(
    path: Path | str, *more: Path | str, precision: InferencePrecision | None = None, device: Device = "auto"
) -> Pipeline:
    """The model in a folder of bertkit, Hugging Face or sentence-transformers, or in a TensorFlow checkpoint of BERT.

    With ``more`` folders the models are an ensemble: predictions are made from the mean of the outputs of their heads.
    ``precision`` is the number format of matrix products: None is float32, or bfloat16 if the ``config.json`` of every
    model says that its weights are. The speed of the machine has no influence on it. ``device`` is ``cpu``, ``cuda``,
    or ``auto``: the first GPU if PyTorch sees one.
    """
    for each in (path, *more):
        if not isinstance(each, str | os.PathLike) or not str(each):
            raise usage_error(f"path is {each!r}; it must be the path of a model's folder.")
    with use_device(device):
        # Weights are read at their first use, when the working directory may be another one.
        folders = [ModelFolder(ModelFolder.open(each).path.absolute()) for each in (path, *more)]
        return Pipeline(*folders, precision=precision)


class Pipeline(EncoderPipeline):
    """Predictions of one model, or of an ensemble. The weights of the heads are loaded when they are first needed.

    ``folder`` is that of the model, and ``task`` the task that it was fine-tuned for; an ensemble has those of the
    first model, with its thresholds. ``precision`` is the number format of matrix products. ``num_truncated`` counts
    the examples so far whose end was cut off.
    """

    def __init__(self, model: ModelFolder, *others: ModelFolder, precision: InferencePrecision | None = None) -> None:
        super().__init__(model, *others, precision=precision)
        for other in others:
            _require_same(model, other)

    def fill(self, text: str, top_k: int = 5, *, candidates: Sequence[int] | None = None) -> list[Results[Filling]]:
        """The ``top_k`` most probable words for each [MASK] of the text, of all or of the ids ``candidates``."""
        check_text(text, "text")
        model, tokenizer, precision = self.masked_lm_model, self.tokenizer, self.runtime.autocast_precision
        return fill(
            model, tokenizer, text, top_k=top_k, candidates=candidates, max_length=self.max_length, precision=precision
        )

    @overload
    def classify(self, texts: str, pair: str | None = None) -> Prediction: ...

    @overload
    def classify(self, texts: Texts, pair: None = None) -> Results[Prediction]: ...

    def classify(self, texts: str | Texts, pair: str | None = None) -> Prediction | Results[Prediction]:
        """The class of a text (or of a text and its ``pair``), with the probability of every class.

        A list of texts, of pairs as tuples, or a table (see ``predict``) gives a list.
        """
        _require_method(self, "classify", "cannot classify texts")
        if isinstance(texts, str):
            (prediction,) = self.predict([texts if pair is None else (texts, pair)])
            assert isinstance(prediction, Prediction)
            return prediction
        if pair is not None:
            raise usage_error("pair goes with one text; a list has its pairs as tuples of two texts.")
        return self.predict(texts)

    def answer(self, question: str, context: str) -> SpanPrediction:
        """The span of the context that answers the question; its text is "" if the model predicts no answer."""
        _require_method(self, "answer", "cannot answer questions")
        example = SpanExample("1", check_text(question, "question"), check_text(context, "context"))
        (prediction,) = self.stream([example])
        assert isinstance(prediction, SpanPrediction)
        return prediction

    def choose(self, prompt: str, choices: Sequence[str]) -> Choice:
        """The choice that fits the prompt best: ``label`` (its index from 0), ``text``, and the ``scores`` of all."""
        _require_method(self, "choose", "cannot choose between texts")
        texts = [check_text(each, f"choices[{number}]") for number, each in enumerate(check_texts(choices, "choices"))]
        (chosen,) = self.stream([make_example("0", check_text(prompt, "prompt"), texts, where="choose")])
        assert isinstance(chosen, Choice)
        return chosen

    def tag(self, text: str | Sequence[str]) -> list[NamedEntity]:
        """The entities in a text, or in a list of words, with their characters in the words joined by spaces."""
        _require_method(self, "tag", "cannot tag words")
        example = self.task.reader.read_line("1", text) if isinstance(text, str) else TagExample("1", check_words(text))
        (prediction,) = self.stream([example])
        return list(prediction.entities)

    def predict(
        self, texts: Sequence[Text] | DataTable, *, text: ColumnName | None = None, pair: ColumnName | None = None
    ) -> Results[Any]:
        """The class or the number of each text, or of each pair; for a table, the prediction of each row.

        A table is a pandas DataFrame or a Dataset of ``datasets``. Its columns are ``text`` and ``pair``, or are found
        as ``bertkit predict`` finds those of a file: those of the training, or guessed with a warning. A model for tags
        gives the tags and ``entities`` of texts, in a list or in a column ``text``, and of a table with a word per row.
        """
        task, examples = _read(self, texts, text, pair)
        # The index of a DataFrame or of a Series; that of a list is a method, and a table of words has several rows for
        # each sentence.
        index = getattr(texts, "index", None)
        has_row_each = index is not None and not callable(index) and len(index) == len(examples)
        return Results(self.stream(examples, task=task), row_index=index if has_row_each else None)

    def logits(
        self, texts: Sequence[Text] | DataTable, *, text: ColumnName | None = None, pair: ColumnName | None = None
    ) -> NDArray[np.float32]:
        """The outputs (N, C) of the head for N texts, before they become predictions, in the order of ``task.labels``.

        Softmax (or sigmoid, for several labels at once) makes them the ``scores`` of ``predict``. Of a model for
        numbers they are (N, 1), in the unit of the files unless ``task.numbers`` has another.
        """
        return _logits(self, texts, text, pair)

    def stream(
        self, examples: Iterable[Any], *, batch_size: int = BATCH_SIZE, task: FileTask | None = None
    ) -> Iterator[Any]:
        """The predictions for examples of the task, such as ``task.reader.read`` gives, one by one and in order.

        The input may be endless: the number of examples in memory is bounded. ``task`` takes the place of the model's
        own, of which it is a variant, such as one for pairs.
        """
        task, precision = task or self.task, self.runtime.autocast_precision
        for prediction in stream(
            self.task_model, task, examples, self.tokenizer, batch_size=batch_size, precision=precision
        ):
            self.num_truncated += getattr(prediction, "num_truncated", 0) > 0
            yield prediction

    @cached_property
    def task(self) -> FileTask:
        """The task in the model folder; for a model that was not made by bertkit, a task with the labels in its config.

        Such a folder does not say whether a classifier needs pairs, unless its labels do, or whether a model that
        answers questions may predict no answer. Set ``pipeline.task = replace(pipeline.task, pair=True)``, or ``null``.
        """
        return _require_task(self.models[0])

    @cached_property
    def masked_lm_model(self) -> Model:
        """The encoder with its masked-LM head, as ``runtime`` computes it."""
        if "task" in self.models[0].metadata:
            raise usage_error(f"{self.folder} is fine-tuned for {self.task.name}; [MASK] needs a pre-trained model.")
        model = load_masked_lm(self.models[0], mapped=self.runtime.copies)
        prepared = self.runtime.prepare(model.to(self.device))
        assert isinstance(prepared, Model)
        return prepared

    @cached_property
    def task_model(self) -> Model | Ensemble:
        """The encoder with the head of ``task``, as ``runtime`` computes it; several models as one."""
        _, *others = self.models
        tasks = [self.task, *map(_require_task, others)]  # their heads may differ
        models = [
            folder.load_model(task.objectives, mapped=self.runtime.copies).to(self.device)
            for folder, task in zip(self.models, tasks, strict=True)
        ]
        model = self.runtime.prepare(models[0] if not others else Ensemble(models))
        assert isinstance(model, Model | Ensemble)
        return model

    def __repr__(self) -> str:
        folders = ", ".join(map(str, self.folders))
        return f"Pipeline({folders}: {_describe(self)}; {self.precision} on {self.device.type})"


def task_for(pipeline: Pipeline, *, pair: bool) -> FileTask:
    """The task of ``pipeline``; one from the ``config.json`` of another library, which does not say if it is for pairs,
    takes a ``pair``.
    """
    is_inferred = "task" not in pipeline.models[0].metadata
    if pair and is_inferred and isinstance(pipeline.task, TextTask):
        return replace(pipeline.task, pair=True)
    return pipeline.task


def _describe(pipeline: Pipeline) -> str:
    """What a model was fine-tuned for, and the method that does it."""
    try:
        task = task_of_folder(pipeline.models[0])
    except BertkitError:  # what is wrong is said by the method that needs the head
        return "its head cannot be used"
    if task is None:
        return "not fine-tuned"
    labels = f" as {list_names(task.labels)}" if task.labels else ""
    return f"{task.name}, {task.pipeline_method or 'predict'}{labels}"


def _require_method(pipeline: Pipeline, method: str, complaint: str) -> None:
    task = pipeline.task
    if task.pipeline_method != method:
        instead = task.pipeline_method or "predict"
        raise usage_error(f"{pipeline.folder} is fine-tuned for {task.name} and {complaint}: use {instead}.")


def _require_same(first: ModelFolder, other: ModelFolder) -> None:
    """Members of an ensemble must have the same vocabulary, type of task and labels."""
    if other.tokenizer.fingerprint != first.tokenizer.fingerprint:
        raise usage_error(f"{other.path} has another vocabulary than {first.path}: they cannot be an ensemble.")
    task, other_task = _require_task(first), _require_task(other)
    if type(other_task) is not type(task):
        raise usage_error(
            f"{other.path} is for {other_task.name} and {first.path} for {task.name}: they cannot be an ensemble."
        )
    if other_task.labels != task.labels:
        raise usage_error(
            f"{other.path} has the labels {list_names(other_task.labels)} and {first.path} "
            f"{list_names(task.labels)}: they cannot be an ensemble."
        )
    for name in task.row_fields:
        own, others = getattr(task, name), getattr(other_task, name)
        if own != others:
            raise usage_error(
                f"{other.path} has task.{name}={others} and {first.path} {own}: they read "
                "different tokens of a text and cannot be an ensemble."
            )
    numbers = [each.numbers for each in (task, other_task) if isinstance(each, RegressionTask)]
    if numbers and not numbers[0].has_scale_of(numbers[1]):
        raise usage_error(
            f"{other.path} and {first.path} give numbers on different scales: they cannot be an ensemble."
        )


def _read(
    pipeline: Pipeline, texts: Sequence[Text] | DataTable, text: ColumnName | None, pair: ColumnName | None
) -> tuple[FileTask, list[Any]]:
    """The examples of texts, of pairs or of the rows of a table, and the task that reads them."""
    if is_memory_table(texts):
        return _read_table(pipeline.task, texts, text, pair)
    method = pipeline.task.pipeline_method
    if text is not None or pair is not None:
        raise usage_error("text and pair name columns of a table; a list has its pairs as tuples of two texts.")
    if method in _METHODS_OF_ONE_INPUT:
        model = f"{pipeline.folder} is fine-tuned for {pipeline.task.name}"
        raise usage_error(f"{model} and reads no list of texts: use {method}.")
    checked = check_texts(texts)
    reader = pipeline.task.reader
    if not isinstance(reader, TextReader):
        read = reader.read_line
        return pipeline.task, [read(str(n), check_text(each, f"texts[{n}]")) for n, each in enumerate(checked)]
    examples = [_example(number, each) for number, each in enumerate(checked)]
    return task_for(pipeline, pair=any(each.second is not None for each in examples)), examples


def _read_table(
    task: FileTask, table: object, text: ColumnName | None, pair: ColumnName | None
) -> tuple[FileTask, list[Any]]:
    """The examples of the rows of a table; warns of columns that were guessed and of empty texts."""
    require_one_table(table, "the table")
    if isinstance(table, Sized) and not len(table):
        return task, []
    first, second = (_name_column(*each) for each in (("text", text), ("pair", pair)))
    with TemporaryDirectory(prefix=TEMPORARY) as folder:
        path = write_memory_table(table, Path(folder), "table")
        with errors_about(path, "the table"):
            found, guessed = choose_columns(task, path, text=first, pair=second)
            _, notes = found.reader.inspect_input(path)
            for note in (guessed if not task.files.splits else "", *notes):
                if note:
                    warnings.warn(note.replace(path.name, "the table"), stacklevel=4)
            return found, list(found.reader.read(path))


def _name_column(argument: str, name: object) -> str | None:
    if name is None or isinstance(name, str):
        return name
    if isinstance(name, int | np.integer):
        return str(name)
    raise usage_error(f"{argument} is {name!r}; it must be the name of a column.")


def _logits(
    pipeline: Pipeline, texts: Sequence[Text] | DataTable, text: ColumnName | None, pair: ColumnName | None
) -> NDArray[np.float32]:
    if not isinstance(pipeline.task, TextTask):
        raise usage_error(
            f"{pipeline.folder} is fine-tuned for {pipeline.task.name}; logits are those of one answer per text."
        )
    task, examples = _read(pipeline, texts, text, pair)
    precision = pipeline.runtime.autocast_precision
    outputs = run_examples(pipeline.task_model, task, examples, pipeline.tokenizer, precision=precision)
    answers = []
    for _, features, rows in outputs:
        pipeline.num_truncated += count_truncated(features) > 0
        answers.append(mean_output(rows, pipeline.task.output))
    return np.array(answers, dtype=np.float32).reshape(len(answers), max(1, len(task.labels)))


def _example(number: int, text: Text) -> TextExample:
    first, second = (text, None) if isinstance(text, str) else text
    return TextExample(str(number), first, second)


def _require_task(model: ModelFolder) -> FileTask:
    """The task of a model; a usage or data error for one without, or with longer rows than its network reads."""
    task, folder = task_of_folder(model), model.path
    if task is None and len(possible := model.metadata.get("architectures", ())) > 1:
        raise data_error(
            f"{folder / CONFIG} names no architecture, and the weights fit {' and '.join(possible)}. Add a line to it, "
            f'such as "architectures": ["{possible[0]}"].'
        )
    if task is None:
        raise usage_error(
            f"{folder} is not fine-tuned for a task. First: bertkit finetune TASK --model {folder} -o RUN"
        )
    if model.positions is not None and task.max_length > model.positions:
        raise data_error(
            f"{folder} was saved with task.max_length={task.max_length}, and its network reads {model.positions} "
            f"tokens at most. Fine-tune it again with --set task.max_length={model.positions}"
        )
    return task


def load_masked_lm(folder: ModelFolder, *, mapped: bool = False) -> Model:
    """The model in ``folder`` with its masked-LM head; a data error without one."""
    model = folder.load_model(_build_masked_lm, only_present=True, mapped=mapped)
    if not model.objectives:
        objectives = read_objectives(folder)
        without = f"pre-trained for {', '.join(objectives)} alone," if objectives else "published"
        raise data_error(
            f"{folder.path} was {without} without the masked-LM head that filling in words needs. It can be "
            "fine-tuned, and it gives vectors of texts."
        )
    return model


def _build_masked_lm(encoder: Encoder) -> dict[str, Objective]:
    """A new masked-LM head; UnsupportedError for an encoder that cannot have one."""
    if not has_token_embedding(encoder) or context_of(encoder.config) != "bidirectional":
        raise UnsupportedError(
            "this model has no masked-LM head; fill needs a BERT, RoBERTa or ModernBERT pre-trained with mlm."
        )
    return build_objectives(["mlm"], encoder)
