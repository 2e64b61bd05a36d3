"""Model folders: one format, and it is Hugging Face's.

``config.json``, ``model.safetensors`` and the tokenizer's files are laid out so that ``transformers`` loads what is
trained here without an export. ``bertkit.json`` beside them holds the metadata: the task, the scores, and the SHA-256
of the files. A folder that another library wrote has no such file and can be read all the same.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertkit.checkpoint import huggingface, huggingface_config, tensorflow
from bertkit.checkpoint.head_classes import POOLER, possible_classes
from bertkit.checkpoint.sentence_transformers import (
    SentenceEmbedding,
    applies_sigmoid,
    read_embedding,
)
from bertkit.checkpoint.weights import WEIGHTS, FirstLoad, find_weights, read_weights
from bertkit.contracts import Encoder, Objective, SubwordTokenizer
from bertkit.encoder_types.architectures import spec_of_config
from bertkit.encoder_types.building import enlarge, sketch_encoder
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.errors import BertkitError, data_error, usage_error
from bertkit.model import Model
from bertkit.nn.init import initialize
from bertkit.storage.atomic import read_json, recoverable_path
from bertkit.storage.checksums import check_files, read_checksums
from bertkit.storage.locations import explain_missing_model, locate_model

METADATA = "bertkit.json"
PRETRAINING_OBJECTIVES = "objectives"
"""The key of a pre-trained model's metadata that names its objectives."""

CONFIG = "config.json"

FORMAT = 2
"""The version of ``bertkit.json``."""

_LEAST_OF_VOCABULARY, _LEAST_OF_A_SMALL_ONE = 0.9, 0.25
"""At least 90 % of the embeddings must have a token. Up to 128 may lack one, because tables are padded to a round size,
but never more than three quarters."""

_ADVICE = "Train the model again."

_SIMILARITY = "similarity"
"""The type of task that trains the vectors of texts."""

_DEPTHS = ("num_layers", "lstm_layers", "num_highways")
"""Settings that count layers. Every layer has a tensor at least."""


class ModelFolder:
    """A model folder that is opened once and passed on.

    Each file is checked against its SHA-256 in ``bertkit.json`` and read at its first use; then its content is kept.
    Only the weights, which could need all memory, are checked and read at every load; other ones by then are an error.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        is_google = not (path / CONFIG).is_file() and tensorflow.is_tensorflow(path)
        self._config_path = path / (tensorflow.CONFIG if is_google else CONFIG)
        self._first_load = FirstLoad()

    @classmethod
    def open(cls, path: Path | str) -> ModelFolder:
        """The model folder that ``path`` means: itself, ``model/`` of a run folder, or a copy of the hub's model.

        Raises a usage error where there is none.
        """
        path = Path(path)
        try:
            for folder in (locate_model(path), recoverable_path(path / "model")):
                if (folder / CONFIG).is_file() or tensorflow.is_tensorflow(folder):
                    return cls(folder)
        except OSError as error:
            raise usage_error(f"no model at {path}: {error.strerror}.") from error
        raise explain_missing_model(path)

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The content of ``bertkit.json``; without one, what ``config.json`` says about the head and its labels.

        Where it names no architecture, the metadata have those that the names of the weights fit.
        """
        if self._record:
            return self._record
        content, source = self._config_file, str(self._config_path)
        labels = huggingface_config.labels_from_hf(content, source)
        several = huggingface_config.is_multi_label(content, labels, source)
        architectures = huggingface_config.architectures_from_hf(content, source) or _guess_architectures(self, labels)
        found = {"architectures": architectures, "labels": labels, "several_labels": several}
        return found | ({"sigmoid": applies_sigmoid(self.path, self._config_file)} if len(labels) == 1 else {})

    @cached_property
    def config(self) -> Any:
        """The configuration of the encoder, as the file has it."""
        return huggingface_config.config_from_hf(self._config_file, str(self._config_path))

    @property
    def stated_dtype(self) -> str:
        """The number format that ``config.json`` says the weights are for, such as float32; "" if it says nothing."""
        return str(self._config_file.get("dtype") or self._config_file.get("torch_dtype") or "")

    @property
    def positions(self) -> int | None:
        """The most tokens that the encoder reads; None where any number is read."""
        return getattr(self.config, "max_positions", None)

    @cached_property
    def embedding(self) -> SentenceEmbedding | None:
        """How the model was trained to make vectors of texts: by a task or by sentence-transformers.

        None for a model that was not trained for it.
        """
        task = self.metadata.get("task") or {}
        if task.get("type") == _SIMILARITY:
            return SentenceEmbedding(pool=task["pooling"], normalize=True, max_length=task["max_length"])
        return read_embedding(self.path)

    @property
    def spec(self) -> EncoderSpec:
        """What the encoder's module states about it."""
        return spec_of_config(self.config)

    @cached_property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer; one with more tokens than the model has embeddings, or far fewer, is a data error.

        An architecture may state how many tokens have no embedding, such as the three that GPT gets for fine-tuning.
        """
        self._check(*set(self._record.get("files", ())) - {CONFIG, WEIGHTS})
        tokenizer = self.spec.load_tokenizer(self.path)
        vocab_size = getattr(self.config, "vocab_size", tokenizer.vocab_size)  # character encoders have none
        _check_vocabulary(self.path, tokenizer.vocab_size, vocab_size, self.spec.huggingface.extra_tokens)
        huggingface_config.check_padding(self.path / CONFIG, self.config, tokenizer)
        return tokenizer

    def build_encoder(self) -> Encoder:
        """A new encoder of the same configuration, with initial weights from torch's random state."""
        vocab_size = _count_embeddings(self)
        config = self.config if vocab_size is None else replace(self.config, vocab_size=vocab_size)
        encoder: Encoder = self.spec.encoder(config)
        return encoder

    def load_encoder(self, *, mapped: bool = False) -> Encoder:
        """The encoder alone; heads in the folder are ignored. A pooler that the folder lacks gets initial weights."""
        return self.load_model(lambda encoder: {}, mapped=mapped).encoder

    def load_model(
        self,
        objectives: Callable[[Encoder], Mapping[str, Objective]],
        *,
        only_present: bool = False,
        mapped: bool = False,
    ) -> Model:
        """The encoder with the heads that ``objectives`` makes for it; with ``only_present``, those in the folder.

        With ``mapped`` the encoder's weights stay in the file and are read where they are used, for a caller that makes
        a copy at once. The process is killed if the file becomes shorter in the meantime. Tokens that the file has no
        embedding for get initial ones, the same at every load. Raises a data error for another head that the folder
        does not hold, and for any tensor that is missing, unknown, or of another shape.
        """
        config, spec = self.config, self.spec
        self._first_load.require_same(find_weights(self.path))
        self._check(WEIGHTS)
        file, tensors = _read_tensors(self)
        _check_depth(spec, config, self._config_path, file, tensors)
        encoder = _with_all_tokens(self, _load_encoder(spec, config, tensors, str(file), mapped=mapped))
        pooler_present = huggingface.has_all_parts(spec.huggingface, tensors)
        heads = dict(objectives(encoder))
        for name, objective in list(heads.items()):
            present = huggingface.has_objective(spec.huggingface, name, objective, tensors)
            if only_present and not (present and (pooler_present or not objective.reads_pooled)):
                del heads[name]
                continue
            state = huggingface.objective_from_hf(spec.huggingface, name, objective, tensors, str(file))
            if objective.reads_pooled and not pooler_present:
                raise data_error(f'{file} has no pooler, which the "{name}" head needs.')
            objective.load_state_dict(state)
        return Model(encoder, heads)

    @cached_property
    def _record(self) -> Mapping[str, Any]:
        """The content of ``bertkit.json``, empty where there is none."""
        return _read_metadata(self.path / METADATA)

    @cached_property
    def _config_file(self) -> Mapping[str, Any]:
        if self._config_path.name != CONFIG:
            return tensorflow.read_config(self.path)
        self._check(CONFIG)
        content = read_json(self._config_path)
        if not isinstance(content, dict):
            raise data_error(f"{self._config_path} is not the configuration of a model.")
        return content

    def _check(self, *names: str) -> None:
        """Compare these files with their SHA-256 in ``bertkit.json``, where there is one."""
        if self._record:
            check_files(self.path / METADATA, self._record, names)


def _count_embeddings(folder: ModelFolder) -> int | None:
    """How many embeddings the encoder needs, if that is more than the file has; None for most."""
    if not folder.spec.huggingface.extra_tokens:
        return None
    try:
        vocab_size = folder.tokenizer.vocab_size
    except BertkitError:  # reported where the tokenizer is needed: the encoder alone reads ids
        return None
    return vocab_size if vocab_size > folder.config.vocab_size else None


def _with_all_tokens(folder: ModelFolder, encoder: Encoder) -> Encoder:
    """The encoder with an embedding for each token of its tokenizer."""
    if (vocab_size := _count_embeddings(folder)) is None:
        return encoder
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        larger: Encoder = enlarge(encoder, vocab_size=vocab_size)
    return larger


def _check_vocabulary(path: Path, tokens: int, embeddings: int, extra_tokens: int) -> None:
    """Raise a data error for more tokens than embeddings, but for the extra ones of an architecture, or far fewer."""
    sizes = f"{path}: its tokenizer has {tokens:,} tokens and its model {embeddings:,} embeddings."
    if tokens > embeddings + extra_tokens:
        raise data_error(f"{sizes} Use the tokenizer that the model was trained with.")
    fewest = min(_LEAST_OF_VOCABULARY * embeddings, embeddings - 128)
    if tokens < max(fewest, _LEAST_OF_A_SMALL_ONE * embeddings):
        raise data_error(
            f"{sizes} It belongs to another model, or a file of the vocabulary was cut off: copy it again."
        )


def read_objectives(folder: ModelFolder) -> tuple[str, ...]:
    """The objectives that the model was pre-trained with; none for a model that says nothing about them."""
    names = folder.metadata.get(PRETRAINING_OBJECTIVES, ())
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise data_error(f"{folder.path}/{METADATA}: {PRETRAINING_OBJECTIVES} is not a list of names. {_ADVICE}")
    return tuple(names)


def _read_metadata(path: Path) -> Mapping[str, Any]:
    if not os.path.lexists(path):
        return {}
    record = read_checksums(path, version=FORMAT, advice=_ADVICE)
    if not isinstance(record.get("task") or {}, dict):
        raise data_error(f"{path}: the task is no JSON object. {_ADVICE}")
    return record


def has_pooler(folder: ModelFolder) -> bool:
    """Whether the weights have a pooler; without next sentences pre-training makes none. Reads them."""
    spec = folder.spec.huggingface
    return spec.optional_part == POOLER and huggingface.has_all_parts(spec, _read_tensors(folder)[1])


def _read_tensors(folder: ModelFolder) -> tuple[Path, dict[str, Tensor]]:
    """The file of the weights, and the tensors under Hugging Face's current names."""
    file, weights = read_weights(folder.path)
    return file, huggingface.normalize_state_dict(folder.spec.huggingface, weights, str(file))


def _guess_architectures(folder: ModelFolder, labels: Sequence[str]) -> list[str]:
    try:
        weights = read_weights(folder.path)[1]
    except BertkitError:  # reported by load_model, where the weights are needed
        return []
    return possible_classes(folder.spec.huggingface, weights, labels)


def _check_depth(spec: EncoderSpec, config: Any, source: Path, weights: Path, tensors: Mapping[str, Tensor]) -> None:
    """Compare the layers that ``config`` declares with the weights: to build a million of them would take hours."""
    layers = huggingface.count_layers(spec.huggingface, tensors)
    if layers == 0:
        raise data_error(
            f"{weights} has no layer of {spec.title}, but {max(tensors, key=len, default='no tensor')}. Give its "
            "tensors the names that they have in transformers."
        )
    if layers is not None and layers != config.num_layers:
        raise data_error(
            f"{source} says {config.num_layers} layers and {weights.name} has {layers}: copy both from one model."
        )
    for name in _DEPTHS:
        if (depth := getattr(config, name, 0)) > len(tensors):
            raise data_error(f"{source}: {name} is {depth:,}; {weights.name} has {len(tensors):,} tensors.")


def _load_encoder(
    spec: EncoderSpec, config: Any, tensors: Mapping[str, Tensor], source: str, *, mapped: bool
) -> Encoder:
    # Built on the meta device: computing the initial weights of BERT-base would take seconds, and they are overwritten.
    encoder = sketch_encoder(spec, config)
    state = huggingface.encoder_from_hf(encoder, tensors, source)
    absent = {name: torch.empty(each.shape) for name, each in encoder.state_dict().items() if name not in state}
    encoder.load_state_dict(state | absent, assign=True)
    if absent:
        initialize(encoder.get_submodule(str(spec.huggingface.optional_part)), config.initializer_range)
    return encoder if mapped else copy.deepcopy(encoder)
