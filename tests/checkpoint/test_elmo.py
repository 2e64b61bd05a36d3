"""The published files of ELMo: what is read from the options, and files that do not fit."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bertkit.checkpoint import elmo as bilm
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.encoders.elmo import HDF5_NAMES, Elmo, ElmoConfig
from bertkit.errors import BertkitError
from bertkit.text.words import train

PUBLISHED: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "embedding": {"dim": 16},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def write(folder: Path, **changes: Any) -> Path:
    """The published options with changes by dotted path, two underscores for a dot; None takes one away."""
    options = json.loads(json.dumps(PUBLISHED))
    for place, value in changes.items():
        *above, key = place.split("__")
        table = options
        for each in above:
            table = table[each]
        if value is None:
            del table[key]
        else:
            table[key] = value
    (folder / "options.json").write_text(json.dumps(options))
    return folder / "options.json"


def test_the_published_options_are_the_defaults(tmp_path: Path) -> None:
    assert bilm.read_options(write(tmp_path)) == ElmoConfig()


def test_options_of_the_training_are_ignored(tmp_path: Path) -> None:
    extra = {"dropout": 0.2, "n_tokens_vocab": 793471, "unroll_steps": 20, "char_cnn__n_characters": 261}
    assert bilm.read_options(write(tmp_path, **extra)) == ElmoConfig(dropout=0.2)


def test_absent_options_have_the_defaults_of_bilm_tf(tmp_path: Path) -> None:
    absent = dict.fromkeys(
        ("lstm__cell_clip", "lstm__proj_clip", "lstm__use_skip_connections", "lstm__n_layers", "char_cnn__n_highway")
    )
    plain = ElmoConfig(cell_clip=None, projection_clip=None, skip_connections=False, num_layers=1, num_highways=0)
    assert bilm.read_options(write(tmp_path, **absent)) == plain


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"char_cnn": None},
            "has no char_cnn.max_characters_per_token; bertkit reads the options of a character-based ELMo",
        ),
        ({"lstm__dim": None}, "has no lstm.dim;"),
        ({"char_cnn__n_characters": 60}, "char_cnn.n_characters is 60; it must be 262"),
        ({"lstm__dim": 512}, "bertkit does not support LSTMs without a projection."),
        ({"char_cnn__activation": "gelu"}, 'activation is "gelu"; there are relu, tanh'),
        ({"char_cnn__filters": [[1, 2, 3]]}, r"Expected `array` of length 2, got 3 - at `\$.filters"),
    ],
)
def test_unsupported_options_are_errors(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BertkitError, match=problem):
        bilm.read_options(write(tmp_path, **changes))


def test_missing_weights_and_wrong_shapes_are_named(tmp_path: Path) -> None:
    small = {"lstm__dim": 11, "lstm__projection_dim": 6, "char_cnn__filters": [[1, 4], [2, 5]]}
    options = write(tmp_path, **small)
    with pytest.raises(BertkitError, match="the weights have no char_embed, which the options require"):
        bilm.load(options, {})
    wrong = {"char_embed": np.zeros((262, 16))}
    with pytest.raises(BertkitError, match=r"the weights' char_embed has the shape \(263, 16\); the options require"):
        bilm.load(options, wrong)


def write_weights(path: Path, elmo: Elmo) -> None:
    """What allenai/bilm-tf would have written for this network."""
    with importlib.import_module("h5py").File(path, "w") as file:
        for name, tensor in elmo.state_dict().items():
            array = tensor.numpy()
            published = HDF5_NAMES[re.sub(r"\d+", "{}", name)].format(*re.findall(r"\d+", name))
            if name == "words.embedding.weight":
                array = array[1:]
            elif array.ndim == 3:
                array = array.T[None]
            else:
                array = array.T
            file[published] = array


def test_an_hdf5_file_is_converted_to_a_model_folder(tmp_path: Path) -> None:
    config = ElmoConfig(
        word_length=7, character_width=3, filters=((1, 4), (2, 5)), num_highways=1, cell_size=11, projection_size=6
    )
    original = Elmo(config)
    write_weights(tmp_path / "weights.hdf5", original)
    options = write(
        tmp_path,
        char_cnn__max_characters_per_token=7,
        char_cnn__embedding__dim=3,
        char_cnn__filters=[[1, 4], [2, 5]],
        char_cnn__n_highway=1,
        lstm__dim=11,
        lstm__projection_dim=6,
    )
    words = train(["a mill by the sea"], word_length=7)
    folder = bilm.convert(options, tmp_path / "weights.hdf5", words=words, output=tmp_path / "elmo")
    loaded = ModelFolder.open(folder).load_encoder().state_dict()
    assert loaded.keys() == original.state_dict().keys()
    for name, tensor in original.state_dict().items():
        assert torch.equal(loaded[name], tensor), name
    with pytest.raises(BertkitError, match=r"reads words of 7 characters; the vocabulary has 9"):
        bilm.convert(options, tmp_path / "weights.hdf5", words=train(["a b"], word_length=9), output=tmp_path / "b")


@pytest.mark.parametrize("kind", ["group", "texts", "link", "empty", "row"])
def test_what_is_no_array_of_numbers_is_an_error(kind: str, tmp_path: Path) -> None:
    h5py = importlib.import_module("h5py")
    with h5py.File(tmp_path / "weights.hdf5", "w") as file:
        if kind == "group":
            file.create_group("char_embed")
        else:
            contents = {
                "texts": np.array([b"a", b"b"]),
                "link": h5py.ExternalLink("nowhere.hdf5", "/x"),
                "empty": h5py.Empty("f"),
                "row": np.zeros(9),
            }
            file["char_embed"] = contents[kind]
    with pytest.raises(BertkitError, match=r"^the weights.* char_embed"):
        bilm.load(write(tmp_path), tmp_path / "weights.hdf5")


def test_errors_of_a_file_that_is_not_hdf5_and_of_missing_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = write(tmp_path)
    with pytest.raises(BertkitError, match=r"options.json cannot be read as HDF5"):
        bilm.load(options, options)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(BertkitError, match=r"needs h5py: pip install 'bertkit\[elmo\]'"):
        bilm.load(options, options)


def test_published_names_are_distinct() -> None:
    assert len(set(HDF5_NAMES.values())) == len(HDF5_NAMES)
