"""Hugging Face's ``config.json`` for our configuration, in both directions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bertkit import config as records
from bertkit.encoder_types import HuggingFaceSpec
from bertkit.encoder_types.architectures import MODEL_TYPE, find_spec, spec_of_config
from bertkit.errors import BertkitError, data_error

SEVERAL_LABELS = "multi_label_classification"


def config_to_foreign(config: Any) -> dict[str, Any]:
    """``config.json`` of the encoder with this configuration, without what depends on the heads."""
    spec = spec_of_config(config)
    kind = spec.huggingface
    if not kind.settings:
        return {MODEL_TYPE: spec.model_type, **records.to_json(config)}
    spelled = {
        theirs: _spell(kind, ours, getattr(config, ours)) for ours, keys in kind.settings.items() for theirs in keys
    }
    return {MODEL_TYPE: spec.model_type, **spelled, "dtype": "float32"}


def config_from_foreign(foreign: Any, source: str) -> Any:
    """The encoder that the content of ``source``, a ``config.json``, describes; what it leaves out is the default.

    What would change the network and is unknown here is an error, not ignored.
    """
    if not isinstance(foreign, dict):
        raise data_error(f"{source} is not the configuration of a model.")
    spec = find_spec(foreign.get(MODEL_TYPE, "bert"), source)
    kind = spec.huggingface
    if not kind.settings:
        own = {each.name: foreign[each.name] for each in dataclasses.fields(spec.config) if each.name in foreign}
        return records.from_json(spec.config, own, source=source)
    for key, supported in kind.fixed.items():
        if foreign.get(key, supported) != supported:
            raise data_error(f'{source}: {key} is "{foreign[key]}"; bertkit reads "{supported}".')
    fields = dict(kind.assumed)
    for ours, keys in kind.settings.items():
        stated = {theirs: foreign[theirs] for theirs in keys if foreign.get(theirs) is not None}
        if len(set(map(str, stated.values()))) > 1:
            said = " and ".join(f"{theirs} {value}" for theirs, value in stated.items())
            raise data_error(f"{source} has {said}; bertkit has one {ours} for both.")
        for theirs, value in stated.items():
            fields[ours] = _read(kind, ours, value, f"{source}: {theirs}")
    try:
        return records.from_json(spec.config, fields, source=source)
    except BertkitError as error:
        text = str(error).rstrip(".")
        for ours, keys in kind.settings.items():
            text = text.replace(f"$.{ours}`", f"{keys[0]}`")
        raise data_error(f"{text}.") from error


def _spell(kind: HuggingFaceSpec, ours: str, value: Any) -> Any:
    spellings = kind.values.get(ours)
    return value if spellings is None else next(theirs for theirs, meant in spellings.items() if meant == value)


def _read(kind: HuggingFaceSpec, ours: str, value: Any, place: str) -> Any:
    spellings = kind.values.get(ours)
    if spellings is None:
        return value
    if str(value) not in spellings:
        raise data_error(f'{place} is "{value}"; bertkit has {", ".join(spellings)}.')
    return spellings[str(value)]


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
