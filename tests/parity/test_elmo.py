"""ELMo equals the published arithmetic, written in numpy, on arrays in the layout of the published files.

The formulas are those of allenai/bilm-tf ``model.py`` and of TensorFlow's ``LSTMCell``, one row and one step at a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bertkit.batch import Feature
from bertkit.checkpoint import elmo as bilm
from bertkit.data.features import collate
from bertkit.text.characters import spell_word

Array = NDArray[np.float64]

OPTIONS: dict[str, Any] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 6,
        "cell_clip": 0.5,
        "proj_clip": 0.3,
        "dim": 11,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 4], [2, 3], [5, 7]],
        "n_highway": 2,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 13,
    },
}
SENTENCES = [["The", "café", "한글", "!"], ["No"], ["Antidisestablishmentarianism", "is", "long"]]


def draw_weights(options: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Arrays with the published names and shapes, with values large enough to be clipped."""
    draws = np.random.default_rng(7)
    cnn, lstm = options["char_cnn"], options["lstm"]
    width = sum(count for _, count in cnn["filters"])
    cells, projected, characters = lstm["dim"], lstm["projection_dim"], cnn["embedding"]["dim"]
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, characters)}
    for number, (size, count) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{number}": (1, size, characters, count), f"CNN/b_cnn_{number}": (count,)}
    for number in range(cnn["n_highway"]):
        for part in ("carry", "transform"):
            shapes |= {
                f"CNN_high_{number}/W_{part}": (width, width),
                f"CNN_high_{number}/b_{part}": (width,),
            }
    shapes |= {"CNN_proj/W_proj": (width, projected), "CNN_proj/b_proj": (projected,)}
    for direction in range(2):
        for layer in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {
                f"{cell}/W_0": (2 * projected, 4 * cells),
                f"{cell}/B": (4 * cells,),
                f"{cell}/W_P_0": (cells, projected),
            }
    return {name: draws.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def sigmoid(numbers: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-numbers)))


def embed(word: NDArray[np.int64], weights: Mapping[str, Array]) -> Array:
    """One word by the published formulas; ids count from 1, as the network reads them."""
    characters = weights["char_embed"][word - 1]
    found: list[float] = []
    for number, (size, _) in enumerate(OPTIONS["char_cnn"]["filters"]):
        kernel, bias = weights[f"CNN/W_cnn_{number}"][0], weights[f"CNN/b_cnn_{number}"]
        starts = range(len(characters) - size + 1)
        convolved = [np.einsum("wd,wdn->n", characters[at : at + size], kernel) + bias for at in starts]
        found.extend(np.maximum(np.max(convolved, axis=0), 0))
    states = np.array(found)
    for number in range(OPTIONS["char_cnn"]["n_highway"]):
        name = f"CNN_high_{number}"
        gate = sigmoid(states @ weights[f"{name}/W_carry"] + weights[f"{name}/b_carry"])
        changed = np.maximum(states @ weights[f"{name}/W_transform"] + weights[f"{name}/b_transform"], 0)
        states = gate * changed + (1 - gate) * states
    return np.asarray(states @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"])


def run(states: list[Array], direction: int, weights: Mapping[str, Array]) -> list[list[Array]]:
    """The outputs of both layers of one direction, in the order in which it reads the words."""
    options = OPTIONS["lstm"]
    layers = []
    for number in range(2):
        name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
        cells, output = np.zeros(options["dim"]), np.zeros(options["projection_dim"])
        given = []
        for state in states:
            gates = np.concatenate([state, output]) @ weights[f"{name}/W_0"] + weights[f"{name}/B"]
            enter, new, forget, leave = np.split(gates, 4)
            cells = sigmoid(forget + 1) * cells + sigmoid(enter) * np.tanh(new)
            cells = np.clip(cells, -options["cell_clip"], options["cell_clip"])
            output = (sigmoid(leave) * np.tanh(cells)) @ weights[f"{name}/W_P_0"]
            output = np.clip(output, -options["proj_clip"], options["proj_clip"])
            given.append(output + state if number else output)
        states = given
        layers.append(given)
    return layers


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Mapping[str, Any]]:
    """The path of an ``options.json``, and the arrays of a file by their names."""
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    np.savez(tmp_path / "weights.npz", **draw_weights(OPTIONS))  # type: ignore[arg-type]  # takes them for options
    return tmp_path / "options.json", np.load(tmp_path / "weights.npz")


def test_every_layer_equals_the_published_arithmetic(files: tuple[Path, Mapping[str, Any]]) -> None:
    options, weights = files
    elmo = bilm.load(options, weights).eval()
    spelled = [np.stack([spell_word(word, length=13) for word in ("<S>", *each, "</S>")]) for each in SENTENCES]
    features = [Feature(ids, np.zeros(len(ids), dtype=np.int64)) for ids in spelled]
    assert [len(feature) for feature in features] == [6, 3, 5]
    layers = elmo(collate(features, pad_id=0), output_hidden_states=True).layers
    exact = {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}
    for row, ids in enumerate(spelled):
        words = [embed(word, exact) for word in ids]
        forward, backward = run(words, 0, exact), run(words[::-1], 1, exact)
        expected = [[np.concatenate([word, word]) for word in words]]
        for ahead, back in zip(forward, backward, strict=True):
            expected.append([np.concatenate(pair) for pair in zip(ahead, back[::-1], strict=True)])
        for ours, values in zip(layers, expected, strict=True):
            reference = torch.tensor(np.array(values), dtype=torch.float32)
            torch.testing.assert_close(ours[row, : len(ids)], reference, rtol=0, atol=1e-5)
