"""Gradients between the backward pass and the update: those of large lookup tables by row, and the norm of all.

A batch reads a few hundred of the vectors of a vocabulary. Autograd's own gradient of such a table is as large as the
table, and zero in all other rows. Writing these zeros and reading them for the norm took a seventh of a step when
MiniLM was fine-tuned on two cores with AMX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bertkit.kernels import update
from bertkit.model import Model
from bertkit.training.adam import takes_rows
from bertkit.training.base_optimizer import Optimizer
from bertkit.training.distributed import is_sharded

_FEWEST_ROWS = 4096
"""Smaller tables gain little: finding the rows of 4,096 tokens takes two milliseconds."""

_MOST_AT_ONCE = 1 << 18
"""Numbers whose squares are added up at once. torch adds them in a few float32 sums on a CPU: the norm of 23 million
random numbers is 0.13 % too small then, and 1e-7 by row; that of as many as here is 2e-6 too small."""


def large_tables(model: Model, optimizer: Optimizer) -> list[nn.Embedding]:
    """The lookup tables of ``model`` whose gradients are worth keeping by row, if ``optimizer`` can take such.

    There are none where the table is the output layer too, as in pre-training: torch copies the gradient of that before
    it adds the rows, which takes as long as the zeros. They are for one process: several exchange gradients in full.
    """
    if not takes_rows(optimizer) or any(head.predicts_vocabulary for head in model.heads.values()):
        return []
    return [each for each in model.modules() if isinstance(each, nn.Embedding) and each.num_embeddings >= _FEWEST_ROWS]


@contextmanager
def kept_by_row(tables: Sequence[nn.Embedding]) -> Iterator[None]:
    """A context whose passes leave the gradient of a table as a sparse tensor; only look-ups may use the table."""
    for table in tables:
        table.sparse = True
    try:
        yield
    finally:
        for table in tables:
            table.sparse = False


def dense_parts(weights: Iterable[nn.Parameter]) -> list[Tensor]:
    """What is not known to be zero of the gradients of ``weights``, each row once."""
    parts = []
    for weight in weights:
        if weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.coalesce()
            parts.append(weight.grad.values())
        elif weight.grad is not None:
            parts.append(weight.grad)
    return parts


def total_norm(gradients: Sequence[Tensor]) -> Tensor:
    """The norm of all ``gradients`` together."""
    if update.supports(gradients) and not any(map(is_sharded, gradients)):
        return update.sum_of_squares(gradients).sqrt().float()
    by_row = [_norms_of_rows(each) if each.numel() > _MOST_AT_ONCE and each.ndim > 1 else each for each in gradients]
    return nn.utils.get_total_norm(by_row, foreach=True)


def _norms_of_rows(matrix: Tensor) -> Tensor:
    """One norm per row, or ``matrix`` as it is if each process has a part of it."""
    return matrix if is_sharded(matrix) else torch.linalg.vector_norm(matrix, dim=-1)
