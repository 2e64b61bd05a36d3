"""What every optimizer has: groups of parameters, a state for each parameter, and a step.

``torch.optim.Optimizer`` has the same, but the first one that is made imports ``torch._dynamo``, which takes nearly as
long as ``import torch`` (1.6 to 2.3 s on a Zen 3). The functions with which torch updates parameters, such as
``torch.optim.adamw.adamw``, do not import it: they are called directly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(kw_only=True, eq=False)
class ParameterGroup:
    """Parameters with the same settings: all are matrices (or tables), or none is.

    ``lr_scale`` is the factor by which their learning rate ``lr`` differs from that of the settings. If Muon trains
    them, ``muon_matrices`` is the number of matrices that each stacks, else 0.
    """

    parameters: list[Tensor]
    betas: tuple[float, float]
    eps: float
    weight_decay: float
    is_matrix: bool
    muon_matrices: int
    lr_scale: float
    lr: float = 0.0

    def with_gradients(self) -> tuple[list[Tensor], list[Tensor]]:
        """The parameters that have a gradient, and their gradients."""
        parameters = [each for each in self.parameters if each.grad is not None]
        return parameters, [each.grad for each in parameters if each.grad is not None]


class Optimizer(ABC):
    """Updates the parameters of ``groups`` by their gradients; expects the ``state`` that ``build_optimizer`` sets.

    ``penalties`` are parameters with the factor of their squared norm in the loss: the gradient of this term, ``2 *
    factor * parameter``, is added in every step.
    """

    def __init__(self, groups: Sequence[ParameterGroup]) -> None:
        self.groups = groups
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self.penalties: Sequence[tuple[Tensor, float]] = ()

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for parameter, factor in self.penalties:
            if parameter.grad is not None:
                parameter.grad = parameter.mul(2 * factor).add_(parameter.grad)  # which may be sparse
        self._update()

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @abstractmethod
    def _update(self) -> None:
        """Update every parameter that has a gradient, without autograd."""

    def list_state(self, parameters: Sequence[Tensor], name: str) -> list[Tensor]:
        """One tensor of the state of each of the parameters."""
        return [self.state[each][name] for each in parameters]
