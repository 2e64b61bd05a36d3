"""Encoders by name, by configuration, and by the ``model_type`` of a model folder.

A name is a module of ``encoders/``, or the dotted path of a module outside bertkit, such as ``my_lab.bag``. A module
that cannot be imported, or has no ``SPEC``, raises its error only when its own encoder is requested.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from bertkit.contracts import Encoder, EncoderConfig
from bertkit.encoder_types.settings import has_lstm
from bertkit.encoder_types.spec import EncoderSpec, PretrainingDefaults
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.lookup import import_trusted, list_modules, load_module, names_from_a_file

MODEL_TYPE = "model_type"
_MODULE = "bertkit_encoder"
"""Key of a ``config.json`` with the module of an encoder outside bertkit, whose ``model_type`` may be another
library's."""

_PACKAGE = "encoders"


@cache
def find_encoder(name: str) -> EncoderSpec:
    """The ``SPEC`` of the encoder module ``name``."""
    module = load_module(_PACKAGE, name)
    spec = getattr(module, "SPEC", None)
    if not isinstance(spec, EncoderSpec):
        raise usage_error(f"{module.__file__} has no SPEC; an encoder module defines one: SPEC = EncoderSpec(...).")
    return spec


def find_architecture(name: str) -> EncoderSpec:
    """The encoder ``name``, which can be pre-trained; for an unknown name the error lists those that can."""
    if "." not in name and name not in list_modules(_PACKAGE):
        known = _list_pretrainable()
        raise usage_error(f'no architecture named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}.')
    spec = find_encoder(name)
    if spec.pretraining is None:
        raise usage_error(
            f"{name} cannot be pre-trained: its SPEC has no pretraining. These can be: "
            f"{', '.join(_list_pretrainable())}."
        )
    return spec


def find_pretraining_defaults(config: EncoderConfig) -> PretrainingDefaults:
    """The pre-training defaults of the encoder with this configuration."""
    defaults = find_architecture(name_architecture(config)).pretraining
    assert defaults is not None
    return defaults


def configure_architecture(name: str, size: str, *, vocab_size: int) -> EncoderConfig:
    """The configuration of this architecture in this size for a vocabulary of ``vocab_size`` tokens."""
    spec = find_architecture(name)
    if spec.size is None:
        raise usage_error(
            f"the SPEC of {name} has no size, which --size {size} needs: "
            f"a function (name, *, vocab_size) that returns a {spec.config.__name__}."
        )
    return spec.size(size, vocab_size=vocab_size)


def name_architecture(config: EncoderConfig) -> str:
    """The name of the encoder module that ``config`` belongs to."""
    kind = type(config)
    spec = getattr(sys.modules.get(kind.__module__), "SPEC", None)
    if isinstance(spec, EncoderSpec) and spec.config is kind:
        return kind.__module__.removeprefix(f"bertkit.{_PACKAGE}.")
    for name, each in _list_usable().items():
        if each.config is kind:
            return name
    raise usage_error(f"{kind.__module__} has no SPEC with config={kind.__name__}; an encoder module defines one.")


def spec_of_config(config: EncoderConfig) -> EncoderSpec:
    """The encoder that is built from ``config``."""
    return find_encoder(name_architecture(config))


def spec_of_encoder(encoder: Encoder) -> EncoderSpec:
    """The SPEC of this encoder."""
    return spec_of_config(encoder.config)


def is_in_huggingface(config: EncoderConfig) -> bool:
    """Whether other libraries have this network: their names for its tensors are known, and no BiLSTM is on top."""
    return bool(spec_of_config(config).huggingface.architectures) and not has_lstm(config)


def name_outside_encoder(config: EncoderConfig) -> dict[str, str]:
    """The entry of ``config.json`` that names the module of an encoder outside bertkit; none for bertkit's own."""
    name = name_architecture(config)
    return {_MODULE: name} if "." in name else {}


def find_spec(content: Mapping[str, object], source: str) -> EncoderSpec:
    """The encoder of a model whose ``config.json`` has this ``content``; ``source`` names the file in the error.

    A module outside bertkit that the file names is imported if the user trusts it. A file of another library names
    none: then an encoder outside bertkit is found if its module has been imported, or is in ``BERTKIT_TRUST``.
    """
    model_type = content.get(MODEL_TYPE, "bert")
    name = str(content.get(_MODULE, model_type)).replace("-", "_")
    if "." in name and all(map(str.isidentifier, name.split("."))):
        with names_from_a_file():
            return find_encoder(name)
    if name in list_modules(_PACKAGE):
        return find_encoder(name)
    every = _list_usable().values()
    import_trusted()
    # Not by getattr, which some modules answer by importing others.
    imported = (getattr(module, "__dict__", {}).get("SPEC") for module in list(sys.modules.values()))
    for each in (*every, *imported):
        if isinstance(each, EncoderSpec) and each.model_type == model_type:
            return each
    known = ", ".join(f'"{each.model_type}"' for each in every)
    raise data_error(f'{source}: {MODEL_TYPE} is "{model_type}"; bertkit reads {known}.')


def _list_pretrainable() -> list[str]:
    return [name for name, each in _list_usable().items() if each.pretraining is not None]


def _list_usable() -> dict[str, EncoderSpec]:
    """The encoders of bertkit by name; a module with an error is left out, so that it does not affect the others."""
    found = {}
    for name in list_modules(_PACKAGE):
        with suppress(Exception):
            found[name] = find_encoder(name)
    return found
