"""One of several choices: a score for each from its own pooled state, and a softmax over those of an example.

Letters: E examples, K the largest number of choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.nn.init import initialize
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives._pooled import PooledObjective


class MultipleChoice(PooledObjective):
    """Dropout and one vector on the pooled [CLS] of every choice (paper, section 4.4).

    ``forward`` returns ``logits`` (E, K), zero where an example has fewer choices. Without
    ``Batch.rows_per_feature`` the rows are the choices of one example. ``constant`` is added to every score: it is the
    bias of Hugging Face's head, and is not trained here, because it changes no probability.
    """

    label = "choice"
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "vector.weight": ("classifier.weight",),
        "constant": ("classifier.bias",),
    }

    def __init__(self, hidden_size: int, *, pooling: Pooling = "cls") -> None:
        super().__init__(hidden_size, pooling=pooling)
        self.vector = nn.Linear(hidden_size, 1, bias=False)
        self.constant: Tensor
        self.register_buffer("constant", torch.zeros(1))
        initialize(self)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (E, K)."""
        scores = self.vector(self.pool_rows(states, batch)).squeeze(-1) + self.constant
        if batch.on_host.rows_per_feature is None:
            return {"logits": scores[None]}  # an exporter has no operator for what follows
        exists = _find_choices(batch)
        return {"logits": scores.new_zeros(exists.shape).masked_scatter(exists, scores)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy over the choices of each example, summed."""
        logits = _hide_absent(outputs["logits"].float(), batch)
        total = F.cross_entropy(logits, batch.labels[self.label], ignore_index=IGNORE, reduction="sum")
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}


def _find_choices(batch: Batch) -> Bool[Tensor, "E K"]:
    """Which entries are choices."""
    choices = batch.on_host.rows_per_feature
    if choices is None:
        return batch.attention_mask.new_ones(1, len(batch))
    exists = torch.arange(int(choices.max())) < choices[:, None]
    return exists.to(batch.input_ids.device, non_blocking=True)


def _hide_absent(logits: Tensor, batch: Batch) -> Tensor:
    return logits.masked_fill(~_find_choices(batch), float("-inf"))


def tiny(hidden_size: int, batch: Batch) -> tuple[MultipleChoice, Batch]:
    """A small instance, and the first row and the others of ``batch`` as the choices of two examples."""
    choices = torch.tensor([1, len(batch) - 1])
    return MultipleChoice(hidden_size), replace(batch, rows_per_feature=choices).with_labels(
        **{MultipleChoice.label: choices - 1}
    )
