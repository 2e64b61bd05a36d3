"""Which passage of the batch follows this one? A text is cut into halves, which are read in two rows.

Passages of one text as each other's positives are those of Giorgi et al. (DeCLUTR, arXiv 2006.03659) and of Neelakantan
et al. (arXiv 2201.10005, section 2.1); here both halves are masked too, so that ``mlm`` shares the forward pass.

Letters: B rows, T tokens, E examples, H hidden width.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Encoder, PretrainingObjective
from bertkit.objective_settings import ObjectiveSettings
from bertkit.objectives._text_pairs import can_compare, compare, losses_of_own, pool_texts

TEMPERATURE = 0.05
"""That of SimCSE (Gao et al., arXiv 2104.08821); it was not tuned here."""


class AdjacentPassages(PretrainingObjective):
    """The cross-entropy of the second half of a text among the second halves of a micro-batch, and of the first half
    among the first halves, by the cosine of the means of their states. It has no weights.
    """

    label = "passages"
    weight = 0.1
    reads_pooled = False
    in_huggingface = False
    rows: ClassVar[Literal["passages"]] = "passages"
    compares_examples: ClassVar[bool] = True

    @classmethod
    def build(cls, encoder: Encoder, settings: ObjectiveSettings) -> Self:
        """A head without weights, for any encoder."""
        return cls()

    def counts(self, batch: Batch) -> dict[str, int]:
        """The texts that were cut, if they are compared with others."""
        return super().counts(batch) if can_compare(batch) else {self.label: 0}

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (E, E) of each second half for each first half, in float32."""
        first, second = pool_texts(states, batch, "mean")
        return {"logits": compare(first, second, batch, temperature=TEMPERATURE)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """The mean of both cross-entropies, summed over the texts that were cut."""
        logits = outputs["logits"]
        losses = (losses_of_own(logits) + losses_of_own(logits.T)) / 2
        known = batch.labels[self.label] != IGNORE
        return {self.label: LossTerm(losses.masked_fill(~known, 0).sum(), self.counts(batch)[self.label])}

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``passages_accuracy``: first halves whose own second half is nearest, of those in the micro-batch."""
        logits = outputs["logits"]
        known = (batch.labels[self.label] != IGNORE) & can_compare(batch)
        right = (logits.argmax(dim=1) == torch.arange(len(logits), device=logits.device)) & known
        return {f"{self.label}_accuracy": LossTerm(right.sum(), self.counts(batch)[self.label])}


def tiny(hidden_size: int, batch: Batch) -> tuple[AdjacentPassages, Batch]:
    """An instance; the rows of ``batch`` are three texts, of which the last was not cut."""
    paired = replace(batch, rows_per_feature=torch.tensor([2, 1, 1]))
    return AdjacentPassages(), paired.with_labels(**{AdjacentPassages.label: torch.tensor([0, 0, IGNORE])})
