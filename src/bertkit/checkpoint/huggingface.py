"""Hugging Face's names and config for what is ours, in both directions.

The tables are data beside the modules they describe: ``encoders/bert.py`` and the files of ``objectives/``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from bertkit.contracts import Objective
from bertkit.encoders.bert import FOREIGN_NAMES, FOREIGN_PREFIX, BertConfig
from bertkit.errors import BertkitError, data_error
from bertkit.model import Model

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
    "pad_id": "pad_token_id",
}
_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}
_THEIR_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}

_OLD_SPELLINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def config_to_foreign(config: BertConfig) -> dict[str, Any]:
    """``config.json`` of this encoder, without what depends on the heads."""
    foreign = {theirs: getattr(config, ours) for ours, theirs in _CONFIG_NAMES.items()}
    return {"model_type": "bert", **foreign, "hidden_act": _ACTIVATIONS[config.activation], "dtype": "float32"}


def config_from_foreign(foreign: Mapping[str, Any], source: str) -> BertConfig:
    """The encoder that ``config.json`` describes; what it leaves out has BERT's defaults."""
    if foreign.get("model_type", "bert") != "bert":
        raise data_error(f'{source} describes a model of type "{foreign["model_type"]}"; bertkit reads "bert".')
    positions = foreign.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise data_error(f'{source} asks for "{positions}" positions; bertkit has learned absolute ones.')
    activation = foreign.get("hidden_act", "gelu")
    if activation not in _THEIR_ACTIVATIONS:
        raise data_error(f'{source} asks for the activation "{activation}"; known: {", ".join(_THEIR_ACTIVATIONS)}.')
    fields = {ours: foreign[theirs] for ours, theirs in _CONFIG_NAMES.items() if foreign.get(theirs) is not None}
    try:
        return BertConfig(**fields, activation=_THEIR_ACTIVATIONS[activation])
    except (BertkitError, TypeError) as error:
        raise data_error(f"{source}: {error}") from error


def _tables(model: Model) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(prefix of ours, our name, their names) for every parameter; an encoder alone has no foreign prefix."""
    prefix = FOREIGN_PREFIX if model.objectives else ""
    for ours, theirs in FOREIGN_NAMES.items():
        for layer in range(model.encoder.num_layers) if "{layer}" in ours else (0,):
            names = tuple(prefix + name.replace("{layer}", str(layer)) for name in theirs)
            yield "encoder.", ours.replace("{layer}", str(layer)), names
    for name, objective in model.objectives.items():
        for ours, theirs in foreign_names(objective).items():
            yield f"objectives.{name}.", ours, theirs


def foreign_names(objective: torch.nn.Module) -> Mapping[str, tuple[str, ...]]:
    """The table that stands in the file of this objective."""
    assert isinstance(objective, Objective)
    table: Mapping[str, tuple[str, ...]] = vars(inspect.getmodule(type(objective))).get("FOREIGN_NAMES", {})
    return table


def tensors_to_foreign(model: Model) -> dict[str, Tensor]:
    """All weights under their names."""
    state = model.state_dict()
    foreign: dict[str, Tensor] = {}
    for prefix, ours, theirs in _tables(model):
        tensor = state.pop(prefix + ours)
        foreign.update(zip(theirs, tensor.chunk(len(theirs)), strict=True))
    assert not state, f"parameters without a foreign name: {sorted(state)}"
    return foreign


def tensors_from_foreign(model: Model, foreign: Mapping[str, Tensor], source: str) -> None:
    """Fill ``model`` from tensors under their names; what is missing or of another shape is an error.

    Tensors that the model has no place for are heads of other tasks and are left alone. A masked language model
    of theirs comes without a pooler: it then keeps its first values.
    """
    known = {_modern(name): tensor for name, tensor in foreign.items()}
    bare = not any(name.startswith(FOREIGN_PREFIX) for name in known)
    state = model.state_dict()
    missing: list[str] = []
    for prefix, ours, theirs in _tables(model):
        names = [name.removeprefix(FOREIGN_PREFIX) if bare else _prefixed(name, known) for name in theirs]
        absent = [name for name in names if name not in known]
        if not absent:
            state[prefix + ours] = torch.cat([known[name] for name in names])
        elif not ours.startswith("pooler."):
            missing += absent
    if missing:
        raise data_error(f"{source} lacks {len(missing)} tensors of the model, such as {', '.join(missing[:3])}.")
    for name, parameter in model.state_dict().items():
        if parameter.shape != state[name].shape:
            shapes = f"{tuple(state[name].shape)}, the model wants {tuple(parameter.shape)}"
            raise data_error(f"{source}: {name} has shape {shapes}.")
    model.load_state_dict(state)


def _prefixed(name: str, known: Mapping[str, Tensor]) -> str:
    return name if name in known else FOREIGN_PREFIX + name


def _modern(name: str) -> str:
    for old, new in _OLD_SPELLINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def has_tensors_of(objective: Objective, foreign: Mapping[str, Tensor]) -> bool:
    """Whether a file holds every weight of this head."""
    names = {_modern(name) for name in foreign}
    return all(name in names for theirs in foreign_names(objective).values() for name in theirs)
