"""The published ELMo: ``options.json`` and ``weights.hdf5`` as allenai/bilm-tf writes them and allennlp reads them.

These files have no softmax of the language model and no vocabulary: ELMo reads the characters of a word. ``convert``
takes the vocabulary as an argument.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.checkpoint.save_model import save_model
from bertkit.config.records import from_plain
from bertkit.encoder_types.building import without_weights
from bertkit.encoders.elmo import HDF5_NAMES, Elmo, ElmoConfig
from bertkit.errors import data_error, usage_error
from bertkit.model import Model
from bertkit.optional import require
from bertkit.storage.atomic import read_json
from bertkit.text.characters import NUM_CHARACTERS
from bertkit.text.words import WordLevel

PublishedArrays = Mapping[str, object]
"""The arrays of the published ``weights.hdf5`` by their names in it: NumPy arrays, or data sets of h5py."""

_OPTIONS = {
    "word_length": "char_cnn.max_characters_per_token",
    "character_width": "char_cnn.embedding.dim",
    "filters": "char_cnn.filters",
    "activation": "char_cnn.activation",
    "num_highways": "char_cnn.n_highway",
    "num_layers": "lstm.n_layers",
    "cell_size": "lstm.dim",
    "projection_size": "lstm.projection_dim",
    "cell_clip": "lstm.cell_clip",
    "projection_clip": "lstm.proj_clip",
    "skip_connections": "lstm.use_skip_connections",
    "dropout": "dropout",
}
_ABSENT: Mapping[str, object] = {
    "num_highways": 0,
    "num_layers": 1,
    "cell_clip": None,
    "projection_clip": None,
    "skip_connections": False,
    "dropout": 0.1,
}
"""The defaults of bilm-tf for absent options; the dropout is that of its ``train_elmo.py``."""

_CHARACTERS = "char_cnn.n_characters"


def read_options(path: Path | str) -> ElmoConfig:
    """The configuration that an ``options.json`` describes. Options of the training are ignored."""
    options = read_json(Path(path))
    fields = {name: _find(options, place) for name, place in _OPTIONS.items()}
    for name, place in _OPTIONS.items():
        if fields[name] is None and name not in _ABSENT:
            raise data_error(f"{path} has no {place}; bertkit reads the options of a character-based ELMo.")
    num_characters = _find(options, _CHARACTERS)
    if num_characters not in (NUM_CHARACTERS - 1, NUM_CHARACTERS):
        raise data_error(
            f"{path}: {_CHARACTERS} is {num_characters}; "
            f"it must be {NUM_CHARACTERS}, or {NUM_CHARACTERS - 1} in a file from training."
        )
    if fields["projection_size"] == fields["cell_size"]:
        raise data_error(
            f"{path}: lstm.dim equals lstm.projection_dim: bertkit does not support LSTMs without a projection."
        )
    present = {name: value for name, value in fields.items() if value is not None}
    return from_plain(ElmoConfig, {**_ABSENT, **present}, source=str(path))


def load(options: Path | str, weights: Path | str | PublishedArrays) -> Elmo:
    """The network with weights from an HDF5 file, which needs h5py, or from arrays by their published names."""
    with without_weights():  # the sizes that the options declare need no memory before the weights have them
        elmo = Elmo(read_options(options))
    with _open(Path(weights)) if isinstance(weights, Path | str) else nullcontext(weights) as arrays:
        state = {name: _read(name, own.shape, arrays) for name, own in elmo.state_dict().items()}
    elmo.load_state_dict(state, assign=True)
    return elmo


def convert(options: Path | str, weights: Path | str | PublishedArrays, *, words: WordLevel, output: Path) -> Path:
    """Write the model folder ``output``, which the word-level baselines read, and return its path.

    ``words`` must have the characters per word that the network reads.
    """
    elmo = load(options, weights)
    if elmo.word_length != words.word_length:
        raise usage_error(
            f"{options} reads words of {elmo.word_length} characters; the vocabulary has {words.word_length}."
        )
    save_model(output, Model(elmo, {}), words, metadata={"kind": "imported", "from": str(options)})
    return output


def _open(path: Path) -> Any:
    """An HDF5 file, open for reading."""
    h5py = require("h5py", extra="elmo", purpose=f"reading {path}")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise data_error(f"{path} cannot be read as HDF5: {error}.") from error


def _find(options: object, place: str) -> object:
    """The value at a dotted path; None if there is none."""
    for key in place.split("."):
        options = options.get(key) if isinstance(options, dict) else None
    return options


def _read(name: str, shape: torch.Size, weights: PublishedArrays) -> torch.Tensor:
    """The published array for the parameter ``name``, which has ``shape``."""
    published = HDF5_NAMES[re.sub(r"\d+", "{}", name)].format(*re.findall(r"\d+", name))
    if published not in weights:
        raise data_error(f"the weights have no {published}, which the options require. Use the two files of one model.")
    try:
        stored: Any = weights[published]
        found = tuple(stored.shape)
        if math.prod(found) <= shape.numel():  # a file can declare any size in a few bytes
            array = _to_ours(name, np.asarray(stored, dtype=np.float32))
            found = array.shape
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:  # a group, texts, a link elsewhere
        raise data_error(f"the weights' {published} cannot be read as an array of numbers: {error}.") from error
    if found != shape:
        raise data_error(f"the weights' {published} has the shape {found}; the options require {tuple(shape)}.")
    if not np.isfinite(array).all():
        raise data_error(f"the weights' {published} has NaN or infinite numbers. Use another copy of the model.")
    return torch.from_numpy(np.ascontiguousarray(array))


def _to_ours(name: str, array: NDArray[np.float32]) -> NDArray[np.float32]:
    """Transposed, as TensorFlow has outputs last; filters without their first axis, which has size 1."""
    if name == "words.embedding.weight":
        return np.pad(array, ((1, 0), (0, 0)))  # row 0 is for "no word", which the published table lacks
    return (array[0] if array.ndim == 4 else array).T
