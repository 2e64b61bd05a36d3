"""Pairs of texts as networks of words read them, and a few examples learned by heart."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bertkit.batch import Batch, Outputs
from bertkit.contracts import Encoder, Task
from bertkit.model import Model


def make_pairs(lengths: Sequence[tuple[int, int]], *, word_length: int) -> Batch:
    """Rows of two texts of so many words, drawn."""
    first, second = torch.tensor(lengths).unsqueeze(2).unbind(dim=1)
    places = torch.arange(int((first + second).max()))
    real = places < first + second
    ids = torch.randint(5, 99, (*real.shape, word_length)) * real.unsqueeze(2)
    return Batch(input_ids=ids, segment_ids=((places >= first) & real).long(), attention_mask=real, labels={})


def learn_by_heart(task: Task, encoder: Encoder, batch: Batch, *, steps: int, rate: float) -> Outputs:
    """What the task's head on ``encoder`` answers to ``batch`` after so many steps of Adam on it alone.

    The shortest proof that everything of a network is connected the right way.
    """
    model = Model(encoder, task.objectives(encoder))
    (label,) = batch.labels
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=rate)
    for _ in range(steps):
        term = model.loss(model(batch), batch)[label]
        optimizer.zero_grad()
        (term.sum / term.count).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    (outputs,) = model.eval()(batch).values()
    answers: Outputs = outputs
    return answers
