"""Hugging Face's ``config.json`` for our configuration, in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertkit import config as records
from bertkit.encoders.bert import BertConfig
from bertkit.errors import BertkitError, data_error

_CONFIG_NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "num_segments": "type_vocab_size",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "layer_norm_eps": "layer_norm_eps",
    "initializer_range": "initializer_range",
    "first_positions": "first_positions",
    "pad_id": "pad_token_id",
}
_THEIR_VOCAB_SIZE = 30522
"""What their ``BertConfig`` means when it says nothing; its other defaults are those of ours."""

SEVERAL_LABELS = "multi_label_classification"

_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}
_THEIR_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


def config_to_foreign(config: BertConfig) -> dict[str, Any]:
    """``config.json`` of this encoder, without what depends on the heads."""
    foreign = {theirs: getattr(config, ours) for ours, theirs in _CONFIG_NAMES.items()}
    return {"model_type": "bert", **foreign, "hidden_act": _ACTIVATIONS[config.activation], "dtype": "float32"}


def config_from_foreign(foreign: Any, source: str) -> BertConfig:
    """The encoder that the content of ``source``, a ``config.json``, describes; what it leaves out is BERT's default.

    What would change the network and is unknown here is an error, not ignored.
    """
    if not isinstance(foreign, dict):
        raise data_error(f"{source} is not the configuration of a model.")
    for key, supported in {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False}.items():
        if foreign.get(key, supported) != supported:
            raise data_error(f'{source}: {key} is "{foreign[key]}"; bertkit reads "{supported}".')
    activation = str(foreign.get("hidden_act", "gelu"))
    if activation not in _THEIR_ACTIVATIONS:
        raise data_error(f'{source}: hidden_act is "{activation}"; bertkit has {", ".join(_THEIR_ACTIVATIONS)}.')
    fields = {ours: foreign[theirs] for ours, theirs in _CONFIG_NAMES.items() if foreign.get(theirs) is not None}
    fields = {"vocab_size": _THEIR_VOCAB_SIZE, **fields, "activation": _THEIR_ACTIVATIONS[activation]}
    try:
        return records.from_json(BertConfig, fields, source=source)
    except BertkitError as error:
        text = str(error).rstrip(".")
        for ours, theirs in _CONFIG_NAMES.items():
            text = text.replace(f"$.{ours}`", f"{theirs}`")
        raise data_error(f"{text}.") from error


def classes_to_foreign(labels: Sequence[str] | None, count: int, *, several: bool = False) -> dict[str, Any]:
    """What ``config.json`` says about a head that tells one of ``count`` classes, or ``several`` of them at once.

    Without names they get numbers.
    """
    labels = labels or [f"LABEL_{number}" for number in range(count)]
    assert len(labels) == count, "a class without a name, or a name without a class"
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
        "problem_type": SEVERAL_LABELS if several else "single_label_classification",
    }


def number_to_foreign() -> dict[str, Any]:
    """What ``config.json`` says about a head that tells a number.

    sentence-transformers would put a sigmoid over a single output unless told not to.
    """
    return {
        "id2label": {"0": "number"},
        "label2id": {"number": 0},
        "problem_type": "regression",
        "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "6.2.0"},
    }


def labels_from_foreign(foreign: Mapping[str, Any], source: str) -> list[str]:
    """The class names that a ``config.json`` gives, by number; empty where it gives none."""
    names = foreign.get("id2label") or {}
    try:
        return [str(names[str(number)]) for number in range(len(names))]
    except (KeyError, TypeError) as error:
        raise data_error(f"{source}: id2label is not a table of the numbers from 0 on.") from error
