"""The encoders that can be pre-trained, by the names of their files."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from bertkit.contracts import Encoder
from bertkit.encoder_types.settings import EncoderConfig
from bertkit.encoder_types.spec import HuggingFaceSpec
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.lookup import shelf, values

MODEL_TYPE = "model_type"


def find_architecture(name: str) -> HuggingFaceSpec:
    """The encoder in the file ``name`` of this shelf; another name lists those that can be pre-trained."""
    known = _list()
    if name not in known:
        raise usage_error(f'no architecture named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}.')
    return known[name]


def configure_architecture(name: str, size: str, *, vocab_size: int) -> EncoderConfig:
    """The configuration of this architecture in a size that its file knows, for a vocabulary of so many pieces."""
    find_architecture(name)
    config: EncoderConfig = import_module(f"bertkit.encoders.{name}").size(size, vocab_size=vocab_size)
    return config


def name_architecture(config: EncoderConfig) -> str:
    """The file on this shelf whose encoder is built from ``config``."""
    (name,) = (name for name, each in _list().items() if each.config is type(config))
    return name


@cache
def _list() -> dict[str, HuggingFaceSpec]:
    every = {name: import_module(f"bertkit.encoders.{name}").HF for name in shelf("encoders")}
    return {name: each for name, each in every.items() if hasattr(each.config, "pretraining_objective")}


def spec_of_encoder(encoder: Encoder) -> HuggingFaceSpec:
    """The spelling of this encoder's weights."""
    (found,) = (each for each in _specs() if isinstance(encoder, each.encoder))
    return found


def spec_of_config(config: object) -> HuggingFaceSpec:
    """The spelling of this encoder's configuration."""
    (found,) = (each for each in _specs() if each.config is type(config))
    return found


def find_spec(model_type: object, source: str) -> HuggingFaceSpec:
    """The spelling that a ``config.json`` names."""
    for each in _specs():
        if each.model_type == model_type:
            return each
    known = ", ".join(f'"{each.model_type}"' for each in _specs())
    raise data_error(f'{source}: {MODEL_TYPE} is "{model_type}"; bertkit reads {known}.')


@cache
def _specs() -> tuple[HuggingFaceSpec, ...]:
    return tuple(values("encoders", HuggingFaceSpec).values())
