"""Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/): momentum, orthogonalised, for hidden matrices.

Letters: N matrices of one shape, R rows, C columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.training.adam import update_with_adamw
from bertkit.training.base_optimizer import Optimizer, ParameterGroup

_MOMENTUM = 0.95
_ITERATIONS = 5
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Jordan's coefficients of the quintic: singular values end between about 0.7 and 1.2, not exactly at 1."""

_MAX_RATIO = 8
"""A matrix whose sides differ by more counts as an output layer, such as one for two classes or for the vocabulary."""


@runtime_checkable
class StacksMatrices(Protocol):
    """A module with Linear layers that stack several matrices by rows: name of the layer -> their number."""

    STACKED: ClassVar[Mapping[str, int]]


def find_hidden_matrices(model: nn.Module) -> dict[str, int]:
    """The weights that Muon trains, by name, with the number of matrices that each stacks.

    They are the weights of the Linear layers whose sides differ by a factor of 8 at most, which leaves out the output
    layers of few classes (256 wide: of up to 31) and of a vocabulary. Embeddings, convolutions and
    torch's own LSTMs are no Linear layers; the gates of ELMo's LSTMs are one, of four stacked matrices.
    """
    stacked = {
        f"{path}.{name}".lstrip("."): count
        for path, module in model.named_modules()
        if isinstance(module, StacksMatrices)
        for name, count in module.STACKED.items()
    }
    found: dict[str, int] = {}
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear):
            count = stacked.get(path, 1)
            sides = sorted((module.out_features // count, module.in_features))
            if sides[1] <= _MAX_RATIO * sides[0]:
                found[f"{path}.weight".lstrip(".")] = count
    return found


class _Update(NamedTuple):
    """A matrix, the direction in which it moves once that is orthogonal, and its learning rate."""

    weight: Tensor
    direction: Tensor
    lr: float


class Muon(Optimizer):
    """Muon for groups with ``muon_matrices`` above 0, fused AdamW for the others.

    Muon: ``m = 0.95 m + 0.05 g``, ``u = orthogonal(0.95 m + 0.05 g)``, ``x -= lr * sqrt(max(1, R / C)) * u``. Each of
    the matrices that a tensor stacks is one ``x``. Weight decay is ``x *= 1 - lr * weight_decay``.

    Equal shapes are orthogonalised in one batched product, in ``dtype``. torch.optim.Muon takes whole tensors, so it
    cannot train the stacked queries, keys and values apart.
    """

    def __init__(self, groups: Sequence[ParameterGroup], *, dtype: torch.dtype) -> None:
        super().__init__(groups)
        self._dtype = dtype

    def _update(self) -> None:
        by_shape: dict[torch.Size, list[_Update]] = {}
        for group in self.groups:
            if not group.muon_matrices:
                update_with_adamw(self, group)
                continue
            for parameter, gradient in zip(*group.with_gradients(), strict=True):
                parameter.mul_(1 - group.lr * group.weight_decay)
                momentum = self.state[parameter]["momentum"].lerp_(gradient, 1 - _MOMENTUM)
                direction = gradient.lerp(momentum, _MOMENTUM)
                parts = (each.chunk(group.muon_matrices) for each in (parameter, direction))
                for weight, part in zip(*parts, strict=True):
                    by_shape.setdefault(weight.shape, []).append(_Update(weight, part, group.lr))
        for (rows, columns), updates in by_shape.items():
            stacked = torch.stack([each.direction for each in updates]).to(self._dtype)
            scale = math.sqrt(max(1.0, rows / columns))
            for each, direction in zip(updates, orthogonalize(stacked), strict=True):
                each.weight.add_(direction, alpha=-each.lr * scale)


def orthogonalize(matrices: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
    """U V^T of the singular value decomposition U S V^T of each matrix, nearly: five steps of Newton-Schulz."""
    a, b, c = _COEFFICIENTS
    is_tall = matrices.shape[1] > matrices.shape[2]
    found = matrices.mT if is_tall else matrices
    found = found / (found.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if is_tall else found
