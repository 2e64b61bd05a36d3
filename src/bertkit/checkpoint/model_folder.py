"""Model folders: one format, and it is Hugging Face's.

``config.json``, ``model.safetensors`` and the tokenizer's files are laid out so that ``transformers`` loads what is
trained here without an export. ``bertkit.json`` beside them says what else there is to know: the task, the scores,
and the SHA-256 of the files. A BERT folder of another maker has none and loads all the same.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bertkit._version import __version__
from bertkit.checkpoint import config as _config
from bertkit.checkpoint import huggingface
from bertkit.checkpoint.tensors import write_tensors
from bertkit.checkpoint.weights import WEIGHTS, read_weights
from bertkit.contracts import Encoder, Objective, SubwordTokenizer
from bertkit.encoder_types import HuggingFaceSpec
from bertkit.encoder_types.architectures import spec_of_config, spec_of_encoder
from bertkit.errors import data_error, usage_error
from bertkit.model import Model
from bertkit.nn.init import initialize
from bertkit.storage.atomic import explain_writing, make_folder, read_json, standing, write_folder, write_json
from bertkit.storage.checksums import check_files, read_seal, write_seal

ABOUT = "bertkit.json"
CONFIG = "config.json"

_CLASSIFIERS = ("classifier.weight", "classifier.out_proj.weight")
"""What tells classes in their files, a row for each."""

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def resolve(path: Path | str) -> Path:
    """The model folder that ``path`` means: itself, or ``model/`` of a run folder."""
    path = Path(path)
    try:
        for folder in map(standing, (path, path / "model")):
            if (folder / CONFIG).is_file():
                return folder
        raise usage_error(f"no model {_what_is_there(path)}")
    except OSError as error:
        raise usage_error(f"no model at {path}: {error.strerror}.") from error


def _what_is_there(path: Path) -> str:
    if (path / "best").exists():
        return f"in {path}, which is a sweep. Its best model: {path / 'best'}"
    if (path / "run.json").is_file():
        return f"in {path} yet: that run has not come to its end. Repeat or resume its command."
    if path.exists():
        return f"at {path}: it has neither {CONFIG} nor model/{CONFIG}."
    siblings = [each.name for each in path.parent.iterdir() if each.is_dir()] if path.parent.is_dir() else []
    if near := difflib.get_close_matches(path.name, siblings, n=1):
        return f"at {path}. Did you mean {path.parent / near[0]}?"
    if _HUB_ID.fullmatch(str(path)):
        return f"at {path}. Nothing is fetched from a hub: download the model and name its folder."
    return f"at {path}."


def read_config(path: Path | str) -> Any:
    """The shape of the encoder in a model folder: the configuration of the network that it has."""
    file = resolve(path) / CONFIG
    return _config.config_from_foreign(_read_config_file(file.parent), str(file))


def encoder_of(config: Any) -> type[Any]:
    """The network that such a configuration is of, to be built from it."""
    return spec_of_config(config).encoder


def read_metadata(path: Path | str) -> dict[str, Any]:
    """What ``bertkit.json`` says; for a folder of another maker, what ``config.json`` knows of its labels."""
    folder = resolve(path)
    if _is_sealed(folder):
        return read_seal(folder / ABOUT)
    foreign = _read_config_file(folder)
    labels = _config.labels_from_foreign(foreign, str(folder / CONFIG))
    several = foreign.get("problem_type") == _config.SEVERAL_LABELS
    return {"architectures": foreign.get("architectures") or [], "labels": labels, "several_labels": several}


def load_tokenizer(path: Path | str) -> SubwordTokenizer:
    """The tokenizer of a model folder; one with more pieces than the model has embeddings is an error.

    That is, more by other pieces than those that fine-tuning adds to such a model.
    """
    folder = resolve(path)
    _check(folder, *set(read_metadata(folder).get("files", ())) - {CONFIG, WEIGHTS})
    config = read_config(folder)
    kind = spec_of_config(config)
    tokenizer = kind.load_tokenizer(folder)
    vocab_size = getattr(config, "vocab_size", tokenizer.vocab_size)  # who reads characters has none
    if tokenizer.vocab_size > vocab_size + kind.later_tokens:
        raise data_error(
            f"{folder}: its tokenizer has {tokenizer.vocab_size:,} pieces and its model {vocab_size:,}; "
            "they do not belong together."
        )
    return tokenizer


def load_encoder(path: Path | str) -> Encoder:
    """The encoder alone; heads in the folder are passed over. A pooler that is not there is freshly drawn."""
    return load_model(path, lambda encoder: {}).encoder


def load_model(path: Path | str, objectives: Callable[[Encoder], Mapping[str, Objective]]) -> Model:
    """The encoder with the heads that ``objectives`` makes for it.

    Raises a data error for a head that the folder does not hold, and for any tensor that is missing, unknown, or
    of another shape.
    """
    folder = resolve(path)
    config = read_config(folder)
    _check(folder, WEIGHTS)
    file, weights = read_weights(folder)
    kind = spec_of_config(config)
    foreign = huggingface.tidy(kind, weights, str(file))
    layers = huggingface.count_layers(kind, foreign)
    if layers is not None and layers != config.num_layers:
        raise data_error(f"{folder}: {CONFIG} says {config.num_layers} layers and {file.name} has {layers}.")
    encoder = _load_encoder(kind, config, foreign, str(file))
    heads = objectives(encoder)
    for name, objective in heads.items():
        if objective.reads_pooled and not huggingface.has_all_parts(kind, foreign):
            raise data_error(f'{file} has no pooler, which the "{name}" head reads.')
        objective.load_state_dict(huggingface.objective_from_foreign(kind, name, objective, foreign, str(file)))
    return Model(encoder, heads)


def _load_encoder(kind: HuggingFaceSpec, config: Any, foreign: Mapping[str, Tensor], source: str) -> Encoder:
    # Without memory, and so without first values: to draw those of BERT-base only to write over them takes seconds.
    with torch.device("meta"), _Undrawn():
        encoder: Encoder = kind.encoder(config)
    state = huggingface.encoder_from_foreign(encoder, foreign, source)
    absent = {name: torch.empty(each.shape) for name, each in encoder.state_dict().items() if name not in state}
    encoder.load_state_dict(state | absent, assign=True)
    if absent:
        initialize(encoder.get_submodule(str(kind.fresh)), config.initializer_range)
    return encoder


class _Undrawn(TorchFunctionMode):
    """``nn.Embedding`` draws its first values with ``normal_``, which without memory loads 800 modules in 2 s."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **kwargs)


def save_model(folder: Path, model: Model, tokenizer: SubwordTokenizer, *, about: Mapping[str, Any]) -> None:
    """Write a model folder whole or not at all; a model that is there already is replaced at the end.

    ``about`` is plain JSON; the classes are named by its ``["task"]["labels"]``.
    """
    encoder: Any = model.encoder
    assert tokenizer.vocab_size <= getattr(encoder.config, "vocab_size", tokenizer.vocab_size)
    tensors = huggingface.tensors_to_foreign(model)
    config = _describe(model, tensors, about)

    def fill(temporary: Path) -> None:
        write_tensors(temporary / WEIGHTS, tensors)
        write_json(temporary / CONFIG, config)
        tokenizer.save(temporary)
        write_seal(temporary / ABOUT, {"bertkit": __version__, **about})

    with explain_writing(folder):
        if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
            raise usage_error(f"{folder} is not empty and holds no model. Choose another folder.")
        make_folder(folder.parent)
        write_folder(folder, fill)


def _describe(model: Model, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> dict[str, Any]:
    """``config.json`` of a model with its heads."""
    kind = spec_of_encoder(model.encoder)
    heads = {str(each.label) for each in model.objectives.values()}
    theirs = kind.architectures
    architectures = [theirs.get(frozenset(heads), theirs[frozenset()])] if theirs else []
    config = {"architectures": architectures, **_config.config_to_foreign(model.encoder.config)}
    outputs = [tensors[name] for name in _CLASSIFIERS if name in tensors]
    if heads in ({"class"}, {"labels"}, {"tags"}) and outputs:
        labels = (about.get("task") or {}).get("labels")
        count = len(outputs[0])
        return config | _config.classes_to_foreign(labels, count=count, several=heads == {"labels"})
    return config | _config.number_to_foreign() if heads == {"number"} else config


def _is_sealed(folder: Path) -> bool:
    return os.path.lexists(folder / ABOUT)


def _check(folder: Path, *names: str) -> None:
    """Hold these files to the SHA-256 in ``bertkit.json``, where there is one."""
    if _is_sealed(folder):
        check_files(folder / ABOUT, names)


def _read_config_file(folder: Path) -> dict[str, Any]:
    _check(folder, CONFIG)
    content = read_json(folder / CONFIG)
    if not isinstance(content, dict):
        raise data_error(f"{folder / CONFIG} is not the configuration of a model.")
    return content
