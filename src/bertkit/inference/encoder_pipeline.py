"""What a loaded model does whatever it was trained for: vectors of texts, their similarity, and hidden states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args, overload

import numpy as np
from torch import nn

from bertkit.batch import id_of
from bertkit.checkpoint.model_folder import CONFIG, ModelFolder
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding
from bertkit.contracts import Encoder
from bertkit.data.features import assemble
from bertkit.encoder_types.building import sketch_encoder
from bertkit.errors import usage_error
from bertkit.inference.conversion import Conversion, convert, convert_to_sentence_transformers
from bertkit.inference.embedding import (
    EmbeddingSettings,
    TextEmbedder,
    TokenStates,
    Vectors,
    check_layers,
    embed,
    encoder_fingerprint,
    hidden_states,
)
from bertkit.inference.embedding_store import EmbeddingRecord
from bertkit.inference.runtime import ResolvedPrecision, Runtime
from bertkit.inference.texts import PlainTexts, check_content, check_plain_texts, describe_value
from bertkit.machine.device import default_device
from bertkit.nn.text_pooling import Pooling
from bertkit.options.job import InferencePrecision
from bertkit.storage.outputs import resolve_output

OtherLibrary = Literal["huggingface", "sentence-transformers"]
"""For which library ``save`` writes a model."""

LONGEST_TEXT = 512
"""The most tokens of a text that are read if the encoder itself has no limit."""


class EncoderPipeline:
    """The encoder of one model, or the models of an ensemble, which have no vectors. Weights are loaded at first use.

    ``folder`` is that of the (first) model, and ``models`` are the opened folders of all. ``num_truncated`` counts the
    examples so far whose end was cut off. ``precision`` is the number format of the products in the blocks. ``device``
    is where the models run.
    """

    def __init__(self, model: ModelFolder, *others: ModelFolder, precision: InferencePrecision | None = None) -> None:
        self.folder = model.path
        self.folders = tuple(each.path for each in (model, *others))
        self.models = (model, *others)
        self.tokenizer = model.tokenizer
        self.num_truncated = 0
        self.device = default_device()
        self._embedders: dict[EmbeddingSettings, TextEmbedder] = {}
        if precision is not None and precision not in get_args(InferencePrecision):
            raise usage_error(f"precision is {precision}; it must be one of {', '.join(get_args(InferencePrecision))}.")
        self._allowed_precision = precision or _stated_precision(self.models)
        self.precision: ResolvedPrecision = (
            self._allowed_precision if self._allowed_precision != "auto" else self.runtime.precision
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without the weights, which a copy loads from the same folders: those in oneDNN's layout cannot be copied."""
        loaded = ("runtime", "_embedders", *(name for name, each in vars(self).items() if isinstance(each, nn.Module)))
        kept = {name: each for name, each in vars(self).items() if name not in loaded}
        return {**kept, "_embedders": {}, "_allowed_precision": self.precision}

    @cached_property
    def runtime(self) -> Runtime:
        """How the model is computed here: the precision, and the fastest backend of this machine in that precision."""
        encoders = [sketch_encoder(folder.spec, folder.config) for folder in self.models]
        return Runtime.choose(encoders, self._allowed_precision, self.device)

    @property
    def max_length(self) -> int:
        """The most tokens of a text that are read, [CLS] and [SEP] included; sentence-transformers may state fewer."""
        embedding = self.models[0].embedding
        stated = None if embedding is None else embedding.max_length
        return min((length for length in (stated, self.models[0].positions) if length), default=LONGEST_TEXT)

    def embed(
        self,
        texts: PlainTexts,
        pool: Pooling | None = None,
        *,
        layers: Sequence[int] = (-1,),
        normalize: bool | None = None,
    ) -> Vectors:
        """The vectors (N, H) of N texts, in float32; one text is N = 1.

        ``texts`` is a text, a list, a NumPy array or a pandas Series of texts. ``pool`` is the ``mean`` or the ``max``
        over all tokens, or the state of [CLS] (``cls``); by default what the model was trained with, else the mean.
        ``layers`` are averaged: -1 is the last, 0 the embeddings. With ``normalize`` the vectors have length 1; by
        default those of a sentence-transformers folder have it that says so. A text that is longer than the model reads
        loses its end, and ``num_truncated`` counts it.
        """
        checked = check_plain_texts(texts)
        settings = settings_for(self, pool, layers, normalize)
        nothing = np.empty((0, self.fast_encoder.hidden_size), dtype=np.float32)
        return np.concatenate([nothing, *self.stream_vectors(checked, settings)])

    def stream_vectors(self, texts: Iterable[str], settings: EmbeddingSettings) -> Iterator[Vectors]:
        """The vectors of any number of texts in order, as arrays (n, H); one of them is in memory at a time."""
        if settings not in self._embedders:
            self._embedders[settings] = TextEmbedder(self.fast_encoder, settings).eval()
        embedder = self._embedders[settings]
        for vectors, num_truncated in embed(
            embedder, self.tokenizer, texts, max_length=self.max_length, precision=self.runtime.autocast_precision
        ):
            self.num_truncated += num_truncated
            yield vectors

    @overload
    def similarity(self, first: str, second: str) -> float: ...  # type: ignore[overload-overlap]

    @overload
    def similarity(self, first: PlainTexts, second: PlainTexts) -> Vectors: ...  # a text is an iterable of texts too

    def similarity(self, first: PlainTexts, second: PlainTexts) -> float | Vectors:
        """The cosine of the vectors of two texts, from -1 to 1; of N and M texts the matrix (N, M) of cosines.

        A text beside a list counts as a list of one.
        """
        matrix = cast(Vectors, self.embed(first, normalize=True) @ self.embed(second, normalize=True).T).clip(-1, 1)
        return float(matrix[0, 0]) if isinstance(first, str) and isinstance(second, str) else matrix

    def hidden_states(self, text: str) -> TokenStates:
        """The ``tokens`` of a text, and the ``states`` (L + 1, T, H) of the embeddings and of each layer."""
        feature = assemble(self.tokenizer, check_content(text, "text"), max_length=self.max_length)
        self.num_truncated += feature.num_truncated > 0
        assert feature.offsets is not None
        tokens = tuple(self.tokenizer.id_to_token(id_of(id)) for id in feature.input_ids.tolist())
        states = hidden_states(self.fast_encoder, feature, self.tokenizer.pad_id, self.runtime.autocast_precision)
        return TokenStates(tokens, feature.offsets, states)

    def save(self, folder: Path | str, *, to: OtherLibrary = "huggingface", overwrite: bool = False) -> Conversion:
        """Write the model with all its heads to ``folder``, as ``bertkit export`` does; ``overwrite`` replaces one.

        ``load`` reads it again, and so do transformers or sentence-transformers.
        """
        if len(self.models) > 1:
            raise usage_error("an ensemble is not one model: save each of its models.")
        if to not in get_args(OtherLibrary):
            raise usage_error(f"to is {to}; it must be {' or '.join(get_args(OtherLibrary))}. bertkit.export has more.")
        output = Path(folder)
        resolve_output(output)
        if output.exists() and output.samefile(self.folder):
            raise usage_error(f"{output} is the folder of this model. Choose another.")
        if (output / CONFIG).exists() and not overwrite:
            raise usage_error(f"{output} has a model. Choose another folder, or replace it with overwrite=True.")
        return (convert if to == "huggingface" else convert_to_sentence_transformers)(self.models[0], output)

    @cached_property
    def embedding(self) -> SentenceEmbedding:
        """How the model was trained to make vectors: ``pool``, ``normalize``, ``max_length``; else the mean."""
        return self.models[0].embedding or SentenceEmbedding()

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder alone, without a head, as it was trained."""
        return only_model(self.models).load_encoder().to(self.device).eval()

    @cached_property
    def fast_encoder(self) -> Encoder:
        """``encoder`` as ``runtime`` computes it."""
        if not self.runtime.copies:
            return self.encoder
        encoder = self.runtime.prepare(only_model(self.models).load_encoder(mapped=True))
        assert isinstance(encoder, Encoder)
        return encoder

    @cached_property
    def encoder_fingerprint(self) -> str:
        """A hash of the weights of ``encoder``."""
        return encoder_fingerprint(only_model(self.models).load_encoder(mapped=True))


def only_model(models: Sequence[ModelFolder]) -> ModelFolder:
    """The model, where there is one; a usage error for an ensemble, whose encoders have nothing in common."""
    if len(models) > 1:
        raise usage_error("the models of an ensemble have no vectors in common: load one of them.")
    return models[0]


def settings_for(
    pipeline: EncoderPipeline,
    pool: Pooling | None = None,
    layers: Sequence[int] = (-1,),
    normalize: bool | None = None,
) -> EmbeddingSettings:
    """These settings, with those of the model's training where they are None."""
    stated = pipeline.embedding
    if not isinstance(normalize, bool | None):
        raise usage_error(f"normalize is {describe_value(normalize)}; it must be true or false.")
    normalize = stated.normalize if normalize is None else normalize
    return EmbeddingSettings(pool=pool or stated.pool, layers=check_layers(layers), normalize=normalize)


def describe_vectors(
    pipeline: EncoderPipeline, settings: EmbeddingSettings, *, rows: int, text: str
) -> EmbeddingRecord:
    """The record of a file of ``rows`` vectors of this model, made from the column ``text``."""
    TextEmbedder(pipeline.fast_encoder, settings)  # checks the settings against the encoder
    return EmbeddingRecord(
        encoder=pipeline.encoder_fingerprint,
        tokenizer=pipeline.tokenizer.fingerprint,
        settings=settings,
        max_length=pipeline.max_length,
        precision=pipeline.precision,
        rows=rows,
        dimension=pipeline.fast_encoder.hidden_size,
        text=text,
    )


def _stated_precision(models: Sequence[ModelFolder]) -> Literal["float32", "bfloat16"]:
    return "bfloat16" if all(model.stated_dtype == "bfloat16" for model in models) else "float32"
