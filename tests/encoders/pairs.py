"""Batches of text pairs as word encoders read them, and overfitting on a few examples."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bertkit.batch import Batch, Outputs
from bertkit.contracts import Encoder, Task
from bertkit.model import Model


def make_pairs(lengths: Sequence[tuple[int, int]], *, word_length: int) -> Batch:
    """Rows of two texts with random words; ``lengths`` has the number of words of both texts of each row."""
    first, second = torch.tensor(lengths).unsqueeze(2).unbind(dim=1)
    positions = torch.arange(int((first + second).max()))
    real = positions < first + second
    ids = torch.randint(5, 99, (*real.shape, word_length)) * real.unsqueeze(2)
    return Batch(input_ids=ids, segment_ids=((positions >= first) & real).long(), attention_mask=real, labels={})


def overfit(task: Task, encoder: Encoder, batch: Batch, *, steps: int, lr: float) -> Outputs:
    """The outputs of the task's head for ``batch`` after ``steps`` steps of Adam on this batch alone.

    A network that cannot overfit a few examples has a wrong connection.
    """
    model = Model(encoder, task.objectives(encoder))
    (label,) = batch.labels
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=lr)
    for _ in range(steps):
        term = model.loss(model(batch), batch)[label]
        optimizer.zero_grad()
        (term.sum / term.count).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    outputs: Outputs
    (outputs,) = model.eval()(batch).values()
    return outputs
