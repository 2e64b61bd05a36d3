"""Hugging Face's names for our weights, in both directions.

The tables of names are data beside the modules they describe: the ``SPEC`` of each module of ``encoders/``
and ``HF_NAMES`` of each objective.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from bertkit.checkpoint.tensors import is_finite
from bertkit.contracts import Encoder, Objective
from bertkit.encoder_types.architectures import spec_of_encoder
from bertkit.encoder_types.spec import HuggingFaceSpec
from bertkit.errors import data_error, list_names
from bertkit.model import Model

Names = Mapping[str, tuple[str, ...]]
"""Our name -> Hugging Face's names."""

_OLD_SPELLINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
_TRANSPOSED = ".T"
_SHOWN = 3


def tensors_to_hf(model: Model) -> dict[str, Tensor]:
    """All weights under Hugging Face's names; those of an encoder alone have no prefix.

    The optional part of the encoder is left out where Hugging Face's class has none.
    """
    spec = spec_of_encoder(model.encoder).huggingface
    prefix = spec.prefix if model.objectives else ""
    tensors = _to_hf(model.encoder, _encoder_names(spec, model.encoder), prefix)
    optional = {name: tensors.pop(prefix + name) for name in _optional_names(spec)}
    if _stores_optional_part(spec, model):
        tensors |= {("" if spec.precedes_heads else prefix) + name: part for name, part in optional.items()}
    for name, objective in model.heads.items():
        if objective.in_huggingface:
            for usual, moved in spec.moved.get(objective.label, {}).items():
                tensors[moved] = tensors.pop(prefix + usual)
        tensors |= _to_hf(objective, _objective_names(spec, name, objective))
    return tensors


def normalize_state_dict(spec: HuggingFaceSpec, tensors: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """Hugging Face's tensors in float32 under their current names, those of the encoder without a prefix.

    Old names are replaced, and weights that a head moves get their usual name; what the file has under that name, such
    as the pooler beside a classifier of RoBERTa, is not used by the head and dropped. Buffers are dropped, and so are
    copies of tied weights if they equal the original.
    """
    normalized: dict[str, Tensor] = {}
    usual = {moved: name for places in spec.moved.values() for name, moved in places.items()}
    names = {name: _current_name(name, spec.prefix) for name in tensors}
    unused = {usual[name] for name in names.values() if name in usual}
    for name, tensor in tensors.items():
        if names[name] in unused or names[name].endswith(spec.buffers):
            continue
        current = usual.get(names[name], names[name])
        if current in normalized:
            raise data_error(f"{source} holds {current} twice, once as {name}.")
        normalized[current] = _to_float32(tensor, f"{source}: {name}")
    for copy, original in _tied(spec).items():
        if copy not in normalized:
            continue
        normalized.setdefault(original, normalized[copy])  # a file may hold the copy alone
        if torch.equal(normalized[copy], normalized[original]):
            del normalized[copy]
    return normalized


def _to_float32(tensor: Tensor, place: str) -> Tensor:
    """Floating-point numbers in float32; others as they are."""
    try:
        return tensor.float() if tensor.is_floating_point() else tensor
    except NotImplementedError as error:  # torch has 4-bit numbers, and no conversion of them
        raise data_error(f"{place} is in {str(tensor.dtype).removeprefix('torch.')}; convert it to float32.") from error


def encoder_from_hf(encoder: Encoder, tensors: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """The state of ``encoder`` from normalized tensors, without its optional part if they have nothing of it.

    Tensors of heads are ignored. A tensor of the encoder that is missing, unknown or of another shape is a data error
    that names it.
    """
    spec = spec_of_encoder(encoder).huggingface
    names = _encoder_names(spec, encoder)
    roots = tuple({name.partition(".")[0] + "." for theirs in names.values() for name in theirs})
    known = {name.removesuffix(_TRANSPOSED) for theirs in names.values() for name in theirs}
    unexpected = [name for name in tensors if name.startswith(roots) and name not in known]
    if not has_all_parts(spec, tensors):
        names = {ours: theirs for ours, theirs in names.items() if not ours.startswith(f"{spec.optional_part}.")}
    return _from_hf(encoder, names, tensors, source, unexpected)


def objective_from_hf(
    spec: HuggingFaceSpec, name: str, objective: Objective, tensors: Mapping[str, Tensor], source: str
) -> dict[str, Tensor]:
    """The state of the head ``name`` from normalized tensors; a data error if they have nothing of it."""
    names = _objective_names(spec, name, objective)
    if not has_objective(spec, name, objective, tensors):
        wanted = ", ".join(theirs[0] for theirs in list(names.values())[:_SHOWN])
        raise data_error(f'{source} has no "{name}" head: nothing named {wanted}.')
    for copy, original in spec.tied.get(objective.label, {}).items():
        if copy in tensors:
            raise data_error(f"{source}: {copy} differs from {original}; bertkit's head ties them.")
    return _from_hf(objective, names, tensors, source)


def has_objective(spec: HuggingFaceSpec, name: str, objective: Objective, tensors: Mapping[str, Tensor]) -> bool:
    """Whether normalized tensors have something of the head ``name``; true for a head without weights."""
    names = _objective_names(spec, name, objective)
    return not names or any(each in tensors for theirs in names.values() for each in theirs)


def has_all_parts(spec: HuggingFaceSpec, tensors: Mapping[str, Tensor]) -> bool:
    """Whether normalized tensors have something of the optional part of the encoder, which may be missing."""
    parts = _optional_names(spec)
    return not parts or any(name in tensors for name in parts)


def _optional_names(spec: HuggingFaceSpec) -> list[str]:
    """Hugging Face's names of the optional part of the encoder, without a prefix."""
    start = f"{spec.optional_part}."
    return [name for ours, theirs in spec.weights.items() if ours.startswith(start) for name in theirs]


def _stores_optional_part(spec: HuggingFaceSpec, model: Model) -> bool:
    """Whether Hugging Face's class for the heads of ``model`` has the optional part.

    A pooler is left out if no head reads it; a part that precedes all heads, if there is none.
    """
    if spec.precedes_heads:
        return bool(model.heads)
    heads = model.heads.values()
    return any(each.reads_pooled for each in heads) or not any(each.in_huggingface for each in heads)


def count_layers(spec: HuggingFaceSpec, tensors: Mapping[str, Tensor]) -> int | None:
    """The number of layers in normalized tensors; None without a table of names, or if the layers share weights."""
    befores = {name.partition("{layer}")[0] for (name, *_) in spec.weights.values() if "{layer}" in name}
    if not befores:
        return None
    (before,) = befores
    numbered = re.compile(rf"{re.escape(before)}([0-9]{{1,6}})\.")
    return 1 + max((int(match[1]) for name in tensors if (match := numbered.match(name))), default=-1)


def _tied(spec: HuggingFaceSpec) -> dict[str, str]:
    """The copies of tied weights in all heads -> their originals."""
    return {copy: original for copies in spec.tied.values() for copy, original in copies.items()}


def _encoder_names(spec: HuggingFaceSpec, encoder: Encoder) -> dict[str, tuple[str, ...]]:
    """The table of the encoder with every layer written out; tensors that it does not list keep our names.

    A layer may lack a tensor that others have, such as a norm.
    """
    state = encoder.state_dict()
    written: dict[str, tuple[str, ...]] = {}
    for ours, theirs in spec.weights.items():
        for layer in range(encoder.num_layers) if "{layer}" in ours else (0,):
            if ours.format(layer=layer) in state:
                written[ours.format(layer=layer)] = tuple(name.format(layer=layer) for name in theirs)
    return written | {name: (name,) for name in state if name not in written}


def _objective_names(spec: HuggingFaceSpec, name: str, objective: Objective) -> Names:
    """The table of names of a head, the encoder's for such heads or the objective's; tensors that it does not list, and
    heads without a table, have our own names. A head may lack a tensor that the objective's table has: one on an
    encoder with a prediction layer has no transform."""
    own_names = {ours: (f"objectives.{name}.{ours}",) for ours in objective.state_dict()}
    if not objective.in_huggingface:
        return own_names
    if objective.label in spec.heads:
        return spec.heads[objective.label]
    return {ours: (objective.HF_NAMES or {}).get(ours, own) for ours, own in own_names.items()}


def _to_hf(module: nn.Module, names: Names, prefix: str = "") -> dict[str, Tensor]:
    state = module.state_dict()
    assert set(state) == set(names), f"without a Hugging Face name, or without a tensor: {set(state) ^ set(names)}"
    return {prefix + name: part.contiguous() for name, part in _list_parts(state, names)}


def _list_parts(state: Mapping[str, Tensor], names: Names) -> Iterator[tuple[str, Tensor]]:
    """Our tensors as Hugging Face's: split into parts, and transposed where the table says so."""
    for ours, theirs in names.items():
        for name, part in zip(theirs, _split(state[ours], len(theirs)), strict=True):
            yield name.removesuffix(_TRANSPOSED), part.T if name.endswith(_TRANSPOSED) else part


def _split(tensor: Tensor, parts: int) -> tuple[Tensor, ...]:
    return tensor.chunk(parts) if parts > 1 else (tensor,)


def _join(names: Sequence[str], tensors: Mapping[str, Tensor]) -> Tensor:
    """Our tensor from the parts with these names; one that is not changed shares its memory with them."""
    parts = [
        tensors[name.removesuffix(_TRANSPOSED)].T if name.endswith(_TRANSPOSED) else tensors[name] for name in names
    ]
    return torch.cat(parts) if len(parts) > 1 else parts[0].contiguous()


def _from_hf(
    module: nn.Module, names: Names, tensors: Mapping[str, Tensor], source: str, unexpected: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Our tensors from Hugging Face's, after a check that all exist with the right shape and number format."""
    wanted = dict(_list_parts(module.state_dict(), names))
    misfits = [
        f"{name} as {_show(tensors[name])} instead of {_show(part)}"
        for name, part in wanted.items()
        if name in tensors and _show(tensors[name]) != _show(part)
    ]
    absent = [name for name in wanted if name not in tensors]
    faults = [_list("lacks", absent), _list("has unknown", unexpected), _list("has", misfits)]
    if any(faults):
        raise data_error(f"{source} {'; '.join(filter(None, faults))}.")
    if broken := [name for name in wanted if not is_finite(tensors[name])]:
        raise data_error(f"{source} {_list('has NaN or infinite weights in', broken)}. Use another copy of the model.")
    return {ours: _join(theirs, tensors) for ours, theirs in names.items()}


def _list(verb: str, names: Sequence[str]) -> str:
    return f"{verb} {list_names(names, _SHOWN)}" if names else ""


def _show(tensor: Tensor) -> str:
    """``30522 x 768``, and the number format if it is not a floating-point one."""
    suffix = "" if tensor.is_floating_point() else f" {str(tensor.dtype).removeprefix('torch.')}"
    return (" x ".join(map(str, tensor.shape)) or "one number") + suffix


def _current_name(name: str, prefix: str) -> str:
    for old, new in _OLD_SPELLINGS.items():
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return name.removeprefix(prefix)
