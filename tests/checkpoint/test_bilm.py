"""The published files of ELMo: what is read from the options, and files that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.checkpoint import bilm
from bertkit.encoders.elmo import FOREIGN_NAMES, ElmoConfig
from bertkit.errors import BertkitError

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


def test_the_options_of_a_training_are_read_too(tmp_path: Path) -> None:
    extra = {"dropout": 0.2, "n_tokens_vocab": 793471, "unroll_steps": 20, "char_cnn__n_characters": 261}
    assert bilm.read_options(write(tmp_path, **extra)) == ElmoConfig(dropout=0.2)


def test_what_is_not_there_is_off(tmp_path: Path) -> None:
    absent = dict.fromkeys(
        ("lstm__cell_clip", "lstm__proj_clip", "lstm__use_skip_connections", "lstm__n_layers", "char_cnn__n_highway")
    )
    plain = ElmoConfig(cell_clip=None, projection_clip=None, skip_connections=False, num_layers=1, num_highways=0)
    assert bilm.read_options(write(tmp_path, **absent)) == plain


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"char_cnn": None}, "has no char_cnn.max_characters_per_token; bertkit reads the options of an ELMo with"),
        ({"lstm__dim": None}, "has no lstm.dim;"),
        ({"char_cnn__n_characters": 60}, "char_cnn.n_characters is 60; it must be 262"),
        ({"lstm__dim": 512}, "LSTMs without a projection are not read."),
        ({"char_cnn__activation": "gelu"}, 'activation is "gelu"; there are relu, tanh'),
        ({"char_cnn__filters": [[1, 2, 3]]}, r"Expected `array` of length 2, got 3 - at `\$.filters"),
    ],
)
def test_options_that_say_something_else(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BertkitError, match=problem):
        bilm.read_options(write(tmp_path, **changes))


def test_weights_that_are_not_there_or_do_not_fit(tmp_path: Path) -> None:
    small = {"lstm__dim": 11, "lstm__projection_dim": 6, "char_cnn__filters": [[1, 4], [2, 5]]}
    options = write(tmp_path, **small)
    with pytest.raises(BertkitError, match="the weights have no char_embed, which the options ask for"):
        bilm.load(options, {})
    wrong = {"char_embed": np.zeros((262, 16))}
    with pytest.raises(BertkitError, match=r"the weights' char_embed does not fit the options: \(263, 16\) where"):
        bilm.load(options, wrong)


def test_no_two_weights_have_one_name() -> None:
    assert len(set(FOREIGN_NAMES.values())) == len(FOREIGN_NAMES)
