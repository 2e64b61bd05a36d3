"""Hugging Face's names for our weights, in both directions.

The tables of names are data beside the modules they describe: ``FOREIGN_NAMES`` in ``encoders/bert.py`` and in the
files of ``objectives/``. Several foreign names for one tensor of ours are its parts along dimension 0.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from bertkit.contracts import Objective
from bertkit.encoders.bert import FOREIGN_NAMES, FOREIGN_PREFIX, Bert
from bertkit.errors import data_error
from bertkit.model import Model

Names = Mapping[str, tuple[str, ...]]
"""Our name -> theirs."""

_OLD_SPELLINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_PREDICTIONS = "cls.predictions."
_TIED = {
    f"{_PREDICTIONS}decoder.weight": "embeddings.word_embeddings.weight",
    f"{_PREDICTIONS}decoder.bias": f"{_PREDICTIONS}bias",
}
_LAYER = re.compile(r"encoder\.layer\.([0-9]{1,6})\.")
_ROOTS = tuple({name.partition(".")[0] + "." for names in FOREIGN_NAMES.values() for name in names})
_SHOWN = 3


def tensors_to_foreign(model: Model) -> dict[str, Tensor]:
    """All weights under their names; those of an encoder alone have no prefix."""
    assert isinstance(model.encoder, Bert)
    prefix = FOREIGN_PREFIX if model.objectives else ""
    foreign = _to_foreign(model.encoder, _encoder_names(model.encoder.num_layers), prefix)
    for name, objective in model.objectives.items():
        foreign |= _to_foreign(objective, _objective_names(name, objective))
    return foreign


def tidy(foreign: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """Their tensors in float32 under their present names, the encoder's without a prefix.

    Old spellings are mended, buffers left out, and copies of tied weights too, if copies they are.
    """
    tidied: dict[str, Tensor] = {}
    for name, tensor in foreign.items():
        present = _mend(name)
        if present in _BUFFERS:
            continue
        if present in tidied:
            raise data_error(f"{source} holds {present} twice, once as {name}.")
        tidied[present] = tensor.float() if tensor.is_floating_point() else tensor
    for copy, original in _TIED.items():
        if copy in tidied and torch.equal(tidied[copy], tidied.setdefault(original, tidied[copy])):
            del tidied[copy]
    return tidied


def encoder_from_foreign(encoder: Bert, foreign: Mapping[str, Tensor], source: str) -> dict[str, Tensor]:
    """The state of ``encoder`` from tidied tensors, without the pooler where they have none.

    A missing tensor, one too many in the encoder's part, or another shape is an error that names it. Heads are
    passed over.
    """
    names = _encoder_names(encoder.num_layers)
    known = {name for theirs in names.values() for name in theirs}
    unexpected = [name for name in foreign if name.startswith(_ROOTS) and name not in known]
    if not has_pooler(foreign):
        names = {ours: theirs for ours, theirs in names.items() if not ours.startswith("pooler.")}
    return _from_foreign(encoder, names, foreign, source, unexpected)


def objective_from_foreign(
    name: str, objective: nn.Module, foreign: Mapping[str, Tensor], source: str
) -> dict[str, Tensor]:
    """The state of the head ``name`` from tidied tensors; where none of it is there, the error says so."""
    names = _objective_names(name, objective)
    if not any(each in foreign for theirs in names.values() for each in theirs):
        wanted = ", ".join(theirs[0] for theirs in list(names.values())[:_SHOWN])
        raise data_error(f'{source} has no "{name}" head: nothing named {wanted}.')
    for copy, original in _TIED.items():
        if copy in foreign and any(theirs[0].startswith(_PREDICTIONS) for theirs in names.values()):
            raise data_error(f"{source}: {copy} differs from {original}; bertkit's head has them tied.")
    return _from_foreign(objective, names, foreign, source)


def has_pooler(foreign: Mapping[str, Tensor]) -> bool:
    """Whether tidied tensors hold something of the pooler."""
    return any(name.startswith("pooler.") for name in foreign)


def count_layers(foreign: Mapping[str, Tensor]) -> int:
    """How many layers tidied tensors hold."""
    return 1 + max((int(match[1]) for name in foreign if (match := _LAYER.match(name))), default=-1)


def _encoder_names(num_layers: int) -> dict[str, tuple[str, ...]]:
    """The table of the encoder with every layer written out."""
    written: dict[str, tuple[str, ...]] = {}
    for ours, theirs in FOREIGN_NAMES.items():
        for layer in range(num_layers) if "{layer}" in ours else (0,):
            written[ours.format(layer=layer)] = tuple(name.format(layer=layer) for name in theirs)
    return written


def _objective_names(name: str, objective: nn.Module) -> Names:
    """The table in the file of an objective; one without a table keeps its own names."""
    assert isinstance(objective, Objective)
    table: Names | None = getattr(inspect.getmodule(type(objective)), "FOREIGN_NAMES", None)
    return table or {ours: (f"objectives.{name}.{ours}",) for ours in objective.state_dict()}


def _to_foreign(module: nn.Module, names: Names, prefix: str = "") -> dict[str, Tensor]:
    state = module.state_dict()
    assert set(state) == set(names), f"without a foreign name, or without a tensor: {set(state) ^ set(names)}"
    return {
        prefix + name: part
        for ours, theirs in names.items()
        for name, part in zip(theirs, _split(state[ours], len(theirs)), strict=True)
    }


def _split(tensor: Tensor, parts: int) -> tuple[Tensor, ...]:
    return tensor.chunk(parts) if parts > 1 else (tensor,)


def _join(parts: list[Tensor]) -> Tensor:
    """Ours from theirs, in memory of its own."""
    return torch.cat(parts) if len(parts) > 1 else parts[0].clone()


def _from_foreign(
    module: nn.Module, names: Names, foreign: Mapping[str, Tensor], source: str, unexpected: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Their tensors joined into ours, once all are there and of the right shape and kind."""
    state = module.state_dict()
    wanted = {
        name: part
        for ours, theirs in names.items()
        for name, part in zip(theirs, _split(state[ours], len(theirs)), strict=True)
    }
    misfits = [
        f"{name} as {_show(foreign[name])} instead of {_show(part)}"
        for name, part in wanted.items()
        if name in foreign and _show(foreign[name]) != _show(part)
    ]
    absent = [name for name in wanted if name not in foreign]
    faults = [_list("lacks", absent), _list("has unknown", unexpected), _list("has", misfits)]
    if any(faults):
        raise data_error(f"{source} {'; '.join(filter(None, faults))}.")
    return {ours: _join([foreign[name] for name in theirs]) for ours, theirs in names.items()}


def _list(verb: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{verb} {', '.join(names[:_SHOWN])}{more}" if names else ""


def _show(tensor: Tensor) -> str:
    """``30522 x 768``, and the number format where it is not one of weights."""
    kind = "" if tensor.is_floating_point() else f" {str(tensor.dtype).removeprefix('torch.')}"
    return (" x ".join(map(str, tensor.shape)) or "one number") + kind


def _mend(name: str) -> str:
    for old, new in _OLD_SPELLINGS.items():
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return name.removeprefix(FOREIGN_PREFIX)
