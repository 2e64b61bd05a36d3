"""Hugging Face's names for our weights, in both directions.

The tables of names are data beside the modules they describe: the ``SPEC`` of each module of ``encoders/``
and ``HF_NAMES`` of each objective.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from bertkit.contracts import Encoder, Objective
from bertkit.encoder_types import HuggingFaceSpec
from bertkit.encoder_types.architectures import spec_of_encoder
from bertkit.errors import data_error
from bertkit.model import Model

Names = Mapping[str, tuple[str, ...]]
"""Our name -> theirs."""

_OLD_SPELLINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
_TRANSPOSED = ".T"
_SHOWN = 3


def tensors_to_foreign(model: Model) -> dict[str, Tensor]:
    """All weights under their names; those of an encoder alone have no prefix."""
    kind = spec_of_encoder(model.encoder).huggingface
    prefix = kind.prefix if model.objectives else ""
    foreign = _to_foreign(model.encoder, _encoder_names(kind, model.encoder), prefix)
    for name, objective in model.objectives.items():
        for usual, moved in kind.moved.get(str(objective.label), {}).items():
            foreign[moved] = foreign.pop(prefix + usual)
        foreign |= _to_foreign(objective, _objective_names(kind, name, objective))
    return foreign


def normalize_state_dict(kind: HuggingFaceSpec, foreign: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """Their tensors in float32 under their present names, the encoder's without a prefix.

    Old spellings are mended, weights that were moved put back, buffers left out, and copies of tied weights too, if
    copies they are.
    """
    normalized: dict[str, Tensor] = {}
    usual = {moved: name for places in kind.moved.values() for name, moved in places.items()}
    for name, tensor in foreign.items():
        present = _mend(name, kind.prefix)
        present = usual.get(present, present)
        if present.endswith(kind.buffers):
            continue
        if present in normalized:
            raise data_error(f"{source} holds {present} twice, once as {name}.")
        normalized[present] = tensor.float() if tensor.is_floating_point() else tensor
    for copy, original in _tied(kind).items():
        if copy in normalized and torch.equal(normalized[copy], normalized.setdefault(original, normalized[copy])):
            del normalized[copy]
    return normalized


def encoder_from_foreign(encoder: Encoder, foreign: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """The state of ``encoder`` from normalized tensors, without its ``fresh`` part where they have none of it.

    A missing tensor, one too many in the encoder's part, or another shape is an error that names it. Heads are
    passed over.
    """
    kind = spec_of_encoder(encoder).huggingface
    names = _encoder_names(kind, encoder)
    roots = tuple({name.partition(".")[0] + "." for theirs in names.values() for name in theirs})
    known = {name.removesuffix(_TRANSPOSED) for theirs in names.values() for name in theirs}
    unexpected = [name for name in foreign if name.startswith(roots) and name not in known]
    if not has_all_parts(kind, foreign):
        names = {ours: theirs for ours, theirs in names.items() if not ours.startswith(f"{kind.fresh}.")}
    return _from_foreign(encoder, names, foreign, source, unexpected)


def objective_from_foreign(
    kind: HuggingFaceSpec, name: str, objective: Objective, foreign: Mapping[str, Tensor], source: str
) -> dict[str, Tensor]:
    """The state of the head ``name`` from normalized tensors; where none of it is there, the error says so."""
    names = _objective_names(kind, name, objective)
    if names and not any(each in foreign for theirs in names.values() for each in theirs):
        wanted = ", ".join(theirs[0] for theirs in list(names.values())[:_SHOWN])
        raise data_error(f'{source} has no "{name}" head: nothing named {wanted}.')
    for copy, original in kind.tied.get(objective.label, {}).items():
        if copy in foreign:
            raise data_error(f"{source}: {copy} differs from {original}; bertkit's head has them tied.")
    return _from_foreign(objective, names, foreign, source)


def has_all_parts(kind: HuggingFaceSpec, foreign: Mapping[str, Tensor]) -> bool:
    """Whether normalized tensors hold something of the part that may be missing."""
    parts = [name for ours, theirs in kind.weights.items() if ours.startswith(f"{kind.fresh}.") for name in theirs]
    return not parts or any(name in foreign for name in parts)


def count_layers(kind: HuggingFaceSpec, foreign: Mapping[str, Tensor]) -> int | None:
    """How many layers normalized tensors hold; None for an encoder without a table: its own names count them."""
    if not kind.weights:
        return None
    (before,) = {name.partition("{layer}")[0] for (name, *_) in kind.weights.values() if "{layer}" in name}
    numbered = re.compile(rf"{re.escape(before)}([0-9]{{1,6}})\.")
    return 1 + max((int(match[1]) for name in foreign if (match := numbered.match(name))), default=-1)


def _tied(kind: HuggingFaceSpec) -> dict[str, str]:
    """Copies of all heads, and of what."""
    return {copy: original for copies in kind.tied.values() for copy, original in copies.items()}


def _encoder_names(kind: HuggingFaceSpec, encoder: Encoder) -> dict[str, tuple[str, ...]]:
    """The table of the encoder with every layer written out; what it does not list has our own names."""
    written: dict[str, tuple[str, ...]] = {}
    for ours, theirs in kind.weights.items():
        for layer in range(encoder.num_layers) if "{layer}" in ours else (0,):
            written[ours.format(layer=layer)] = tuple(name.format(layer=layer) for name in theirs)
    return written | {name: (name,) for name in encoder.state_dict() if name not in written}


def _objective_names(kind: HuggingFaceSpec, name: str, objective: nn.Module) -> Names:
    """The table of the encoder for such a head, or that in its own file; one without a table keeps its own names."""
    assert isinstance(objective, Objective)
    if objective.label in kind.heads:
        return kind.heads[objective.label]
    table = objective.HF_NAMES
    return table if table is not None else {ours: (f"objectives.{name}.{ours}",) for ours in objective.state_dict()}


def _to_foreign(module: nn.Module, names: Names, prefix: str = "") -> dict[str, Tensor]:
    state = module.state_dict()
    assert set(state) == set(names), f"without a foreign name, or without a tensor: {set(state) ^ set(names)}"
    return {prefix + name: part.contiguous() for name, part in _list_parts(state, names)}


def _list_parts(state: Mapping[str, Tensor], names: Names) -> Iterator[tuple[str, Tensor]]:
    """Our tensors as theirs: cut in parts, turned where theirs lie the other way."""
    for ours, theirs in names.items():
        for name, part in zip(theirs, _split(state[ours], len(theirs)), strict=True):
            yield name.removesuffix(_TRANSPOSED), part.T if name.endswith(_TRANSPOSED) else part


def _split(tensor: Tensor, parts: int) -> tuple[Tensor, ...]:
    return tensor.chunk(parts) if parts > 1 else (tensor,)


def _join(names: Sequence[str], foreign: Mapping[str, Tensor]) -> Tensor:
    """Ours from theirs, in memory of its own."""
    parts = [
        foreign[name.removesuffix(_TRANSPOSED)].T if name.endswith(_TRANSPOSED) else foreign[name] for name in names
    ]
    return torch.cat(parts) if len(parts) > 1 else parts[0].clone(memory_format=torch.contiguous_format)


def _from_foreign(
    module: nn.Module, names: Names, foreign: Mapping[str, Tensor], source: str, unexpected: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Their tensors joined into ours, once all are there and of the right shape and kind."""
    wanted = dict(_list_parts(module.state_dict(), names))
    misfits = [
        f"{name} as {_show(foreign[name])} instead of {_show(part)}"
        for name, part in wanted.items()
        if name in foreign and _show(foreign[name]) != _show(part)
    ]
    absent = [name for name in wanted if name not in foreign]
    faults = [_list("lacks", absent), _list("has unknown", unexpected), _list("has", misfits)]
    if any(faults):
        raise data_error(f"{source} {'; '.join(filter(None, faults))}.")
    return {ours: _join(theirs, foreign) for ours, theirs in names.items()}


def _list(verb: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{verb} {', '.join(names[:_SHOWN])}{more}" if names else ""


def _show(tensor: Tensor) -> str:
    """``30522 x 768``, and the number format where it is not one of weights."""
    kind = "" if tensor.is_floating_point() else f" {str(tensor.dtype).removeprefix('torch.')}"
    return (" x ".join(map(str, tensor.shape)) or "one number") + kind


def _mend(name: str, prefix: str) -> str:
    for old, new in _OLD_SPELLINGS.items():
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return name.removeprefix(prefix)
