"""Model folders: one format, and it is Hugging Face's.

``config.json``, ``model.safetensors`` and the tokenizer's files are laid out so that ``transformers`` loads what is
trained here without an export; ``bertkit.json`` beside them says what else there is to know: the task, the scores,
and the SHA-256 of the weights.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertkit._version import __version__
from bertkit.checkpoint._tensors import read_tensors, write_tensors
from bertkit.checkpoint.huggingface import (
    config_from_foreign,
    config_to_foreign,
    has_tensors_of,
    tensors_from_foreign,
    tensors_to_foreign,
)
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError, data_error, did_you_mean, usage_error
from bertkit.model import Model
from bertkit.storage import TEMPORARY_PREFIX, publish_folder, read_json, sha256_of, write_json
from bertkit.text.wordpiece import WordPiece

ABOUT = "bertkit.json"
WEIGHTS = "model.safetensors"
_PICKLED = "pytorch_model.bin"
_INDEX = "model.safetensors.index.json"
_PREVIOUS = ".previous"
"""Two folders cannot change places at once: between two renames the old model stands under this name."""

_LARGEST_PICKLE = 16 << 30

_ARCHITECTURES = {
    frozenset({"mlm", "nsp"}): "BertForPreTraining",
    frozenset({"mlm"}): "BertForMaskedLM",
    frozenset({"nsp"}): "BertForNextSentencePrediction",
    frozenset({"class"}): "BertForSequenceClassification",
    frozenset({"number"}): "BertForSequenceClassification",
    frozenset[str](): "BertModel",
}


def resolve(path: Path | str) -> Path:
    """The model folder that ``path`` means: itself, or ``model/`` of a run folder."""
    path = Path(path)
    for folder in (path, path / "model", path / f"model{_PREVIOUS}"):
        if (folder / "config.json").is_file():
            return folder
    if path.is_dir():
        raise usage_error(f"no model in {path}: it has neither config.json nor model/config.json.")
    near = ""
    if path.parent.is_dir():
        names = [str(path.parent / each.name) for each in path.parent.iterdir() if each.is_dir()]
        near = did_you_mean(str(path), names).replace('"', "")
    raise usage_error(f"no model at {path}.{near or ' Nothing is fetched from a hub: name a folder.'}")


def read_config(path: Path | str) -> BertConfig:
    """The shape of the encoder in a model folder."""
    file = resolve(path) / "config.json"
    return config_from_foreign(read_json(file), str(file))


def read_about(path: Path | str) -> dict[str, Any]:
    """What ``bertkit.json`` says; for a folder of another maker, the labels that ``config.json`` knows."""
    folder = resolve(path)
    if (folder / ABOUT).is_file():
        about: dict[str, Any] = read_json(folder / ABOUT)
        return about
    foreign = read_json(folder / "config.json")
    names = foreign.get("id2label") or {}
    return {
        "architectures": foreign.get("architectures") or [],
        "labels": [names[key] for key in sorted(names, key=int)],
    }


def load_tokenizer(path: Path | str) -> WordPiece:
    """The tokenizer of a model folder."""
    return WordPiece.load(resolve(path))


def load_encoder(path: Path | str) -> Bert:
    """The encoder alone; heads in the folder are left alone. A pooler that is not there stays freshly drawn."""
    return _load(resolve(path), lambda encoder: {}).encoder  # type: ignore[return-value]


def load_model(path: Path | str, objectives: Callable[[Encoder], Mapping[str, Objective]]) -> Model:
    """The encoder and those heads; a head that the folder does not hold is an error."""
    return _load(resolve(path), objectives)


def holds(path: Path | str, objective: Objective) -> bool:
    """Whether the folder has the weights of this head."""
    return has_tensors_of(objective, _read_weights(resolve(path)))


def _load(folder: Path, objectives: Callable[[Encoder], Mapping[str, Objective]]) -> Model:
    encoder = Bert(read_config(folder))
    model = Model(encoder, dict(objectives(encoder)))
    tensors_from_foreign(model, _read_weights(folder), str(folder))
    return model


def _read_weights(folder: Path) -> dict[str, Tensor]:
    if (folder / WEIGHTS).is_file():
        wanted = read_json(folder / ABOUT).get("sha256", {}).get(WEIGHTS) if (folder / ABOUT).is_file() else None
        if wanted is not None and sha256_of(folder / WEIGHTS) != wanted:
            raise data_error(f"{folder / WEIGHTS} is damaged: its SHA-256 is not that of {ABOUT}.")
        return _as_float32(read_tensors(folder / WEIGHTS))
    if (folder / _INDEX).is_file():
        files = sorted(set(read_json(folder / _INDEX)["weight_map"].values()))
        if any(Path(name).name != name for name in files):
            raise data_error(f"{folder / _INDEX} names files outside its folder.")
        return _as_float32({k: v for name in files for k, v in read_tensors(folder / name).items()})
    if (folder / _PICKLED).is_file():
        return _as_float32(_read_pickled(folder / _PICKLED))
    raise data_error(f"{folder} has no weights: {WEIGHTS} is missing.")


def _read_pickled(path: Path) -> dict[str, Tensor]:
    """torch's old format, without running what may be in it."""
    if path.stat().st_size > _LARGEST_PICKLE:
        raise data_error(f"{path} is larger than {_LARGEST_PICKLE >> 30} GiB; convert it to safetensors.")
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a file that is no weights
        raise data_error(f"{path} is not a plain file of weights: {type(error).__name__}.") from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise data_error(f"{path} does not hold tensors by name.")
    return loaded


def _as_float32(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def save_model(folder: Path, model: Model, tokenizer: WordPiece, *, about: Mapping[str, Any]) -> None:
    """Write a model folder whole or not at all; one that is there already is replaced at the end."""
    assert isinstance(model.encoder, Bert)
    temporary = folder.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write_tensors(temporary / WEIGHTS, tensors_to_foreign(model), {"format": "pt"})
        write_json(temporary / "config.json", _config(model, about))
        tokenizer.save(temporary)
        hashes = {WEIGHTS: sha256_of(temporary / WEIGHTS)}
        write_json(temporary / ABOUT, {"bertkit": __version__, **about, "sha256": hashes})
        previous = folder.with_name(folder.name + _PREVIOUS)
        if folder.exists():
            shutil.rmtree(previous, ignore_errors=True)
            folder.rename(previous)
        publish_folder(temporary, folder)
        shutil.rmtree(previous, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise BertkitError(f"cannot write the model to {folder}: {error.strerror or error}.") from error


def _config(model: Model, about: Mapping[str, Any]) -> dict[str, Any]:
    assert isinstance(model.encoder, Bert)
    labels = [objective.label for objective in model.objectives.values() if isinstance(objective, Objective)]
    config = {"architectures": [_ARCHITECTURES[frozenset(labels)]], **config_to_foreign(model.encoder.config)}
    names = about.get("task", {}).get("labels") or []
    if "class" in labels:
        return {
            **config,
            "id2label": {str(number): name for number, name in enumerate(names)},
            "label2id": {name: number for number, name in enumerate(names)},
            "problem_type": "single_label_classification",
        }
    if "number" in labels:
        identity = {"activation_fn": "torch.nn.modules.linear.Identity"}
        return {**config, "id2label": {"0": "number"}, "label2id": {"number": 0}, "problem_type": "regression"} | {
            "sentence_transformers": identity
        }
    return config
