"""The cosine of two texts: trained on scores, or on pairs that belong together with the other pairs as negatives.

Letters: B rows, T tokens, H hidden width, E examples, of which each has two rows.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Objective
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives._text_pairs import can_compare, compare, losses_of_own, pool_texts


class ContrastiveSimilarity(Objective):
    """The cosine of the pooled states of two texts; a head without weights, so that it trains the encoder alone.

    The rows of an example are its two texts (of more, the first and the last count). Without a ``temperature`` the
    loss is the squared difference of the cosine and the label, from 0 to 1 (Reimers and Gurevych, arXiv 1908.10084,
    section 3). With one, every example is a pair that belongs together, and the loss is the cross-entropy of its second
    text among the second texts of the batch, by cosine / temperature (van den Oord et al., arXiv 1807.03748; Gao et
    al., arXiv 2104.08821). An equal text is no negative.
    """

    label = "similarity"
    reads_pooled = False
    in_huggingface = False

    def __init__(self, *, pooling: Pooling = "mean", temperature: float | None = None) -> None:
        super().__init__()
        self.pooling = pooling
        self.temperature = temperature

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """The first position of every row where that is all that is pooled, else all."""
        if self.pooling != "cls":
            return None
        positions = torch.zeros_like(batch.attention_mask)
        positions[:, 0] = True
        return positions

    def counts(self, batch: Batch) -> dict[str, int]:
        """The labelled examples; with a ``temperature``, if they are compared with others."""
        return super().counts(batch) if self.temperature is None or can_compare(batch) else {self.label: 0}

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``cosine`` (E,), and the ``first`` and ``second`` vectors (E, H) of length 1, in float32."""
        first, second = pool_texts(states, batch, self.pooling)
        return {"cosine": (first * second).sum(dim=1), "first": first, "second": second}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """The squared error, or the cross-entropy, summed over the labelled examples."""
        labels = batch.labels[self.label].float()
        known = labels != IGNORE
        if self.temperature is None:
            losses = (outputs["cosine"].float() - labels).square()
        else:
            losses = losses_of_own(compare(outputs["first"], outputs["second"], batch, temperature=self.temperature))
        return {self.label: LossTerm(losses.masked_fill(~known, 0).sum(), self.counts(batch)[self.label])}


def tiny(hidden_size: int, batch: Batch) -> tuple[ContrastiveSimilarity, Batch]:
    """A small instance; the rows of ``batch`` are two examples, the first of which has one text twice."""
    labels = torch.tensor([0.25, 0.75])
    paired = replace(batch, rows_per_feature=torch.tensor([1, len(batch) - 1]))
    return ContrastiveSimilarity(), paired.with_labels(**{ContrastiveSimilarity.label: labels})
