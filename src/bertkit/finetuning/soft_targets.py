"""The probabilities that a larger model gives to the classes, as targets for the head of a smaller one.

Letters: B examples, T tokens, C classes.
"""

from __future__ import annotations

from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Objective
from bertkit.objectives.sequence_classification import SequenceClassification

_SMALLEST = 1e-9
"""A probability of 0 would have no logarithm."""


class SoftTargets(Objective):
    """Knowledge distillation (Hinton et al., arXiv 1503.02531): the head learns what a teacher predicts.

    ``head`` is that of the task and is shared with it, in a pass of its own, which draws its own dropout. The labels
    (B, C) are the probabilities of the teacher. Both distributions are softened by ``temperature`` T, as the softmax of
    logits / T; the loss is T² times the Kullback-Leibler divergence, so that its gradient does not depend on T in the
    limit of large T.
    """

    label = "teacher"
    in_huggingface = False

    def __init__(self, head: SequenceClassification, *, temperature: float) -> None:
        super().__init__()
        self.head = head
        self.reads_pooled = head.reads_pooled
        self.temperature = temperature

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """What the head of the task reads."""
        return self.head.reads(batch)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (B, C) of the head."""
        return self.head(states, batch)  # type: ignore[no-any-return]

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """The divergence from the teacher, summed over the examples."""
        ours = F.log_softmax(outputs["logits"].float() / self.temperature, dim=-1)
        theirs = batch.labels[self.label].float().clamp(min=_SMALLEST).log() / self.temperature
        total = F.kl_div(ours, F.log_softmax(theirs, dim=-1), reduction="sum", log_target=True)
        return {self.label: LossTerm(total * self.temperature**2, self.counts(batch)[self.label])}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Every example has a target."""
        return {self.label: len(batch.on_host.labels[self.label])}
