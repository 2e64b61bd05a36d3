"""Hugging Face's ``config.json`` from our configuration, and our configuration from it; ``tokenizer_config.json``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertkit.config.records import from_plain, to_plain
from bertkit.contracts import EncoderConfig, SubwordTokenizer
from bertkit.encoder_types.architectures import MODEL_TYPE, find_spec, name_outside_encoder, spec_of_config
from bertkit.encoder_types.spec import HuggingFaceSpec
from bertkit.errors import BertkitError, data_error

MULTI_LABEL = "multi_label_classification"

_PROBLEMS = (None, "regression", "single_label_classification", MULTI_LABEL)
"""The values of ``problem_type``; transformers knows no others."""

_MOST_LABELS = 100_000


def config_to_hf(config: EncoderConfig) -> dict[str, object]:
    """The content of ``config.json`` for an encoder, without the keys that depend on the heads."""
    spec = spec_of_config(config)
    table = spec.huggingface
    kind = {MODEL_TYPE: spec.model_type, **name_outside_encoder(config)}
    if not table.settings:
        return {**kind, **to_plain(config)}
    hf_fields = {
        theirs: _spell(table, ours, getattr(config, ours)) for ours, keys in table.settings.items() for theirs in keys
    }
    return {**kind, **hf_fields, "dtype": "float32"}


def config_from_hf(content: object, source: str) -> Any:
    """Our configuration from the ``content`` of ``source``, a ``config.json``; absent keys have their default.

    A value that would change the network in a way that bertkit does not support is a data error.
    """
    if not isinstance(content, dict):
        raise data_error(f"{source} is not the configuration of a model.")
    spec = find_spec(content, source)
    table = spec.huggingface
    if not table.settings:
        own = {each.name: content[each.name] for each in dataclasses.fields(spec.config) if each.name in content}
        return from_plain(spec.config, own, source=source)
    if table.rewrite is not None:
        content = dict(table.rewrite(content, source))
    for key, supported in table.fixed.items():
        if content.get(key, supported) != supported:
            raise data_error(f'{source}: {key} is "{content[key]}"; bertkit reads "{supported}".')
    fields = dict(table.assumed)
    for ours, keys in table.settings.items():
        present = {theirs: content[theirs] for theirs in keys if content.get(theirs) is not None}
        read = [_read(table, ours, value, f"{source}: {theirs}") for theirs, value in present.items()]
        if any(value != read[0] for value in read):
            values = " and ".join(f"{theirs} {value}" for theirs, value in present.items())
            raise data_error(f"{source} has {values}; bertkit has one {ours} for both, so they must be equal.")
        if read:
            fields[ours] = read[0]
    try:
        return from_plain(spec.config, fields, source=source)
    except BertkitError as error:
        text = str(error).rstrip(".")
        for ours, keys in table.settings.items():
            text = text.replace(f"$.{ours}`", f"{keys[0]}`")
        raise data_error(f"{text}.") from error


def _spell(table: HuggingFaceSpec, ours: str, value: object) -> object:
    spellings = table.values.get(ours)
    return value if spellings is None else next(theirs for theirs, own in spellings.items() if own == value)


def _read(table: HuggingFaceSpec, ours: str, value: object, place: str) -> object:
    spellings = table.values.get(ours)
    if spellings is None:
        return value
    if str(value) not in spellings:
        raise data_error(f'{place} is "{value}"; bertkit supports {", ".join(spellings)}.')
    return spellings[str(value)]


def classes_to_hf(labels: Sequence[str] | None, count: int, *, several: bool = False) -> dict[str, object]:
    """The keys of ``config.json`` for a head that predicts one of ``count`` classes, or ``several`` at once.

    Classes without names are numbered.
    """
    labels = labels or [f"LABEL_{number}" for number in range(count)]
    assert len(labels) == count, "a class without a name, or a name without a class"
    return {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
        "problem_type": MULTI_LABEL if several else "single_label_classification",
    }


def number_to_hf(label: str = "number", *, sigmoid: bool = False) -> dict[str, object]:
    """The keys of ``config.json`` for a head that predicts a number, which has a name there.

    sentence-transformers applies a sigmoid to a single output unless ``activation_fn`` is the identity. ``sigmoid`` is
    for a cross-encoder from there that was trained so.
    """
    function = "torch.nn.modules.activation.Sigmoid" if sigmoid else "torch.nn.modules.linear.Identity"
    return {
        "id2label": {"0": label},
        "label2id": {label: 0},
        "problem_type": "regression",
        "sentence_transformers": {"activation_fn": function, "version": "6.2.0"},
    }


def labels_from_hf(content: Mapping[str, Any], source: str) -> list[str]:
    """The class names in the ``content`` of a ``config.json``, by number; empty if it names none.

    With ``num_labels`` alone they are LABEL_0 and so on, as in Hugging Face.
    """
    names = content.get("id2label") or _number_labels(content.get("num_labels"), source)
    found = [names.get(str(number)) for number in range(len(names))] if isinstance(names, Mapping) else [None]
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in found):
        raise data_error(f"{source}: id2label must map the numbers from 0 on to names.")
    labels = [str(each) for each in found]
    if repeated := [label for label, count in Counter(labels).items() if count > 1]:
        raise data_error(f'{source}: id2label has the name "{repeated[0]}" twice. Give each class its own name.')
    return labels


def _number_labels(count: object, source: str) -> dict[str, str]:
    if count is None:
        return {}
    if not isinstance(count, int) or not 1 <= count <= _MOST_LABELS:
        raise data_error(f"{source}: num_labels is {count}; it must be a whole number from 1 to {_MOST_LABELS:,}.")
    return {str(number): f"LABEL_{number}" for number in range(count)}


def architectures_from_hf(content: Mapping[str, Any], source: str) -> list[str]:
    """Hugging Face's classes that the ``content`` of a ``config.json`` names; empty if it names none."""
    names = content.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise data_error(f'{source}: architectures must be a list of classes, such as ["BertForMaskedLM"].')
    return names


def is_multi_label(content: Mapping[str, Any], labels: Sequence[str], source: str) -> bool:
    """Whether the ``content`` of a ``config.json`` says that a text may have several of the ``labels``.

    A problem that neither transformers nor bertkit knows, and a regression to several numbers, are data errors.
    """
    problem = content.get("problem_type")
    if problem not in _PROBLEMS:
        known = ", ".join(f'"{each}"' for each in _PROBLEMS if each)
        raise data_error(f'{source}: problem_type is "{problem}"; bertkit reads {known}.')
    if problem == "regression" and len(labels) > 1:
        raise data_error(f"{source}: problem_type is regression with {len(labels)} outputs; bertkit reads one number.")
    return bool(problem == MULTI_LABEL)


def check_padding(file: Path, config: EncoderConfig, tokenizer: SubwordTokenizer) -> None:
    """Raise a data error if positions are counted from another id of padding than that of the tokenizer."""
    pad_id = getattr(config, "pad_id", tokenizer.pad_id)
    if spec_of_config(config).huggingface.positions_from_pad and pad_id != tokenizer.pad_id:
        raise data_error(
            f"{file}: pad_token_id is {pad_id}, and the tokenizer pads with {tokenizer.pad_id}. The model counts "
            "positions from the first: correct it to the one that it was trained with."
        )


def fit_tokenizer_config(
    content: Mapping[str, Any], config: EncoderConfig, metadata: Mapping[str, Any]
) -> Mapping[str, Any]:
    """``tokenizer_config.json`` with which others truncate as the task does, and make segment ids only where the
    encoder has segments."""
    task = metadata.get("task")
    of_task = task.get("max_length") if isinstance(task, dict) else None
    known = [length for length in (getattr(config, "max_positions", None), of_task) if length is not None]
    if not known:
        return content
    fitted = {**content, "model_max_length": min(known)}
    if getattr(config, "num_segments", 0) < 2 and "model_input_names" in fitted:
        fitted["model_input_names"] = [name for name in fitted["model_input_names"] if name != "token_type_ids"]
    return fitted
