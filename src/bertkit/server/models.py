"""A loaded model as the server uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import Feature
from bertkit.contracts import Encoder, OutputArrays
from bertkit.data.features import assemble
from bertkit.encoder_types.transformer import Transformer
from bertkit.errors import BertkitError
from bertkit.inference.embedding import EmbeddingSettings, TextEmbedder, TokenEmbedder
from bertkit.inference.fill import Filling
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.inference.pipeline import Pipeline, task_for
from bertkit.inference.predict import count_padding, run_features
from bertkit.inference.texts import Text
from bertkit.model import Model
from bertkit.results import Results
from bertkit.server.activations import find_activation
from bertkit.server.errors import invalid, unable
from bertkit.server.jobs import Encoded, TooLongError
from bertkit.task_types import FileTask, QuestionAnsweringTask, TextExample, TextTask
from bertkit.task_types.probabilities import Activation

_BATCH = 64
"""The most rows that a model reads at a time; the batcher bounds the tokens."""

_PART_TOKENS = 8192
"""Tokens between two looks at the clock: below a second for MiniLM on two cores. Most batches are shorter."""

_ANSWER_NUMBERS = 2_000_000
"""The most numbers of an answer with the states of tokens: 40 MB of JSON."""

FILL, EMBED = "fill-mask", "feature-extraction"


def _never_stop() -> None:
    pass


class TaskInput(NamedTuple):
    """An example, and the task that encodes and decodes it."""

    task: FileTask
    example: Any


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A prediction, and the outputs of the head that it was made from, one per feature."""

    prediction: Any
    outputs: Sequence[OutputArrays]


class ServedModel:
    """A model under its ``name``. ``task`` is what it was fine-tuned for, None if it was not.

    ``tasks`` are Hugging Face's names of what it can do, its own task first. ``max_length`` are the tokens that its own
    task reads; for vectors of texts it is ``pipeline.max_length``. ``predictions``, ``fillings``,
    ``embeddings`` and ``token_states`` are the operations of its heads and of its encoder. ``padding_tokens`` is the
    padding that it has computed so far.
    """

    def __init__(self, name: str, pipeline: Pipeline) -> None:
        self.name = name
        self.pipeline = pipeline
        self.padding_tokens = 0
        folder, *_ = pipeline.models
        # A task that cannot be read is an error: without its head the model would give vectors only.
        self.task = None if task_of_folder(folder) is None else pipeline.task
        self.fills = self.task is None and _can_fill(pipeline)
        self.activation: Activation = find_activation(self.task, folder.metadata)
        self._is_of_bertkit = "task" in folder.metadata
        self._name_of_number: tuple[str, ...] = tuple(folder.metadata.get("labels") or ("LABEL_0",))
        self.max_length = pipeline.max_length if self.task is None else self.task.max_length
        own = [] if self.task is None else [self.task.pipeline_tag]
        self.tasks = (*own, *([FILL] if self.fills else []), EMBED)
        self.predictions, self.fillings = PredictOperation(self), FillOperation(self)
        self.embeddings, self.token_states = EmbedOperation(self), EmbedTokensOperation(self)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes or tags; a number has one, as in Hugging Face's files."""
        if self.task is None:
            return ()
        return self.task.labels or (self._name_of_number if self.gives_number else ())

    @property
    def gives_number(self) -> bool:
        """Whether the model gives one number for a text or a pair."""
        return isinstance(self.task, TextTask) and self.task.pipeline_method == "predict"

    @property
    def number_activation(self) -> Activation | None:
        """The activation of TEI for the one number of a model of another library; else None, the model's own."""
        return "sigmoid" if self.gives_number and not self._is_of_bertkit else None

    @property
    def can_rerank(self) -> bool:
        """Whether the number may be that of a query and a text; a folder of another library does not say whether."""
        if not self.gives_number:
            return False
        task = task_for(self.pipeline, pair=True)
        return isinstance(task, TextTask) and task.pair

    @property
    def makes_vectors(self) -> bool:
        """Whether the model was trained to make vectors of texts, which any model gives."""
        return self.pipeline.models[0].embedding is not None

    def text_input(self, text: Text) -> TaskInput:
        """The input of a classifier or of a regression for a text or a pair."""
        if not isinstance(self.task, TextTask):
            raise unable(f'the model "{self.name}" does not classify texts; it can do: {", ".join(self.tasks)}')
        first, second = (text, None) if isinstance(text, str) else text
        return TaskInput(task_for(self.pipeline, pair=second is not None), TextExample("0", first, second))

    def find_prompt(self, name: str | None) -> str:
        """What the folder, written by sentence-transformers, puts before a text; 422 for an unknown name."""
        if not name:
            return ""
        prompts = self.pipeline.embedding.model_config.get("prompts")
        known = prompts if isinstance(prompts, dict) else {}
        if not isinstance(known.get(name), str):
            listed = f"it has: {', '.join(map(str, known))}" if known else "it has none: send the text with it"
            raise invalid(f'the model "{self.name}" has no such prompt; {listed}', "prompt_name")
        if known[name] and not self.pipeline.embedding.include_prompt:
            message = f'the vectors of "{self.name}" leave the tokens of a prompt out, which bertkit cannot do'
            raise invalid(message, "prompt_name")
        return str(known[name])

    def describe_error(self, error: BertkitError) -> str:
        """The message of an error with the name of the model in place of its folders, which are not for clients."""
        message = str(error)
        for folder in self.pipeline.folders:
            message = message.replace(str(folder), self.name)
        return message

    def warm_up(self) -> None:
        """Load the weights, run each operation once, and compute what answers need of the tokenizer."""
        _ = self.pipeline.tokenizer.fingerprint  # 0.3 s, in which the event loop would answer nobody
        if isinstance(self.task, TextTask):
            text: Text = ("a", "a") if self.task.pair else "a"
            self.predictions.run(self.predictions.encode([self.text_input(text)]))
        elif self.task is not None:
            _ = self.pipeline.task_model
        self.embeddings.run(self.embeddings.encode(["a"]))

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that the heads use too, so that its weights are in memory once."""
        model = (
            self.pipeline.task_model if self.task is not None else self.pipeline.masked_lm_model if self.fills else None
        )
        return model.encoder if isinstance(model, Model) else self.pipeline.fast_encoder

    def run(self, module: Any, features: Sequence[Feature], check: Callable[[], None]) -> list[OutputArrays]:
        """The outputs for each feature; ``check`` is called before each part of ``_PART_TOKENS``."""
        pad_id, precision = self.pipeline.tokenizer.pad_id, self.pipeline.runtime.autocast_precision
        outputs: list[OutputArrays] = []
        for part in _split_by_tokens(features):
            check()
            outputs += run_features(module, part, pad_id, _BATCH, precision)
            if not isinstance(self.encoder, Transformer):  # which computes the tokens alone
                self.padding_tokens += count_padding(part, _BATCH, self.pipeline.device)
        return outputs


class PredictOperation:
    """``TaskInput`` to ``TaskResult``."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model

    def encode(self, inputs: Sequence[TaskInput]) -> list[Encoded]:
        """The features of each example."""
        encoded = []
        for each in inputs:
            features = each.task.encode(each.example, self._model.pipeline.tokenizer)
            limit = each.task.encoder.longest_question if isinstance(each.task, QuestionAnsweringTask) else None
            encoded.append(replace(_count((each, features), features), limit=limit))
        return encoded

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None] = _never_stop) -> list[TaskResult]:
        """The predictions, decoded by the task of each input."""
        features = [feature for each in inputs for feature in each.content[1]]
        rows = iter(self._model.run(self._model.pipeline.task_model, features, check))
        results = []
        for each in inputs:
            check()
            (task, example), own = each.content
            outputs = list(islice(rows, len(own)))
            results.append(TaskResult(task.decode(example, own, outputs), outputs))
        return results


class EmbedOperation:
    """Texts to vectors (H,) in float32, not normalized."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model

    def encode(self, inputs: Sequence[str]) -> list[Encoded]:
        """One feature per text."""
        pipeline = self._model.pipeline
        tokens = pipeline.tokenizer.encode_batch(list(inputs))
        features = [assemble(pipeline.tokenizer, each, max_length=pipeline.max_length) for each in tokens]
        return [_count(feature, [feature]) for feature in features]

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None] = _never_stop) -> list[NDArray[np.float32]]:
        """The vectors."""
        rows = self._model.run(self._embedder, [each.content for each in inputs], check)
        return [np.asarray(row["vector"], dtype=np.float32) for row in rows]

    @cached_property
    def _embedder(self) -> TextEmbedder:
        pipeline = self._model.pipeline
        return TextEmbedder(self._model.encoder, EmbeddingSettings(pool=pipeline.embedding.pool)).eval()


class EmbedTokensOperation(EmbedOperation):
    """Texts to the states (T, H) of their T tokens in float32, special tokens included."""

    def encode(self, inputs: Sequence[str]) -> list[Encoded]:
        """One feature per text; 422 for an answer that would be too large."""
        encoded = super().encode(inputs)
        if sum(each.num_tokens for each in encoded) * self._model.encoder.hidden_size > _ANSWER_NUMBERS:
            message = f"the answer has more than {_ANSWER_NUMBERS:,} numbers: send fewer or shorter texts"
            raise invalid(message, "inputs")
        return encoded

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None] = _never_stop) -> list[NDArray[np.float32]]:
        """The states."""
        features = [each.content for each in inputs]
        rows = self._model.run(self._token_embedder, features, check)
        return [row["states"][: len(feature)] for row, feature in zip(rows, features, strict=True)]

    @cached_property
    def _token_embedder(self) -> TokenEmbedder:
        return TokenEmbedder(self._model.encoder).eval()


class FillInput(NamedTuple):
    """A text with masks, the largest number of words for each, and the only ids that are given, if not all are."""

    text: str
    most: int
    candidates: tuple[int, ...] | None = None


class FillOperation:
    """``FillInput`` to the candidates for each mask."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model

    def encode(self, inputs: Sequence[FillInput]) -> list[Encoded]:
        """The texts themselves: ``fill`` tokenizes them. None may be too long: its end could be the mask."""
        pipeline = self._model.pipeline
        counts = [len(pipeline.tokenizer.encode(each.text, specials=True).ids) + 2 for each in inputs]
        for number, count in enumerate(counts):
            if count > pipeline.max_length:
                raise TooLongError(number, limit=pipeline.max_length, given=count)
        return [Encoded(each, count) for each, count in zip(inputs, counts, strict=True)]

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None] = _never_stop) -> list[list[Results[Filling]]]:
        """One text at a time."""
        found = []
        for each in inputs:
            check()
            text, most, candidates = each.content
            found.append(self._model.pipeline.fill(text, most, candidates=candidates))
        return found


def _split_by_tokens(features: Sequence[Feature]) -> Iterator[list[Feature]]:
    """The features in parts of ``_PART_TOKENS`` tokens, or one feature."""
    part: list[Feature] = []
    tokens = 0
    for feature in features:
        if part and tokens + len(feature) > _PART_TOKENS:
            yield part
            part, tokens = [], 0
        part.append(feature)
        tokens += len(feature)
    if part:
        yield part


def _count(content: Any, features: Sequence[Feature]) -> Encoded:
    rows = [np.array([len(each)]) if each.lengths is None else each.lengths for each in features]
    lengths = np.concatenate(rows)
    return Encoded(
        content,
        num_tokens=int(lengths.sum()),
        num_truncated=sum(each.num_truncated for each in features),
        longest_row=int(lengths.max()),
    )


def _can_fill(pipeline: Pipeline) -> bool:
    try:
        return bool(pipeline.fill(pipeline.tokenizer.id_to_token(pipeline.tokenizer.mask_id), 1))
    except BertkitError:
        return False
