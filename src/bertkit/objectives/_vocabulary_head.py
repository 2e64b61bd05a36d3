"""The common part of objectives that predict a token of the vocabulary at every labelled position.

Letters: B examples, T tokens, H hidden width, V vocabulary, M labelled positions of the whole batch, N rows.
"""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Encoder, PretrainingObjective, has_token_embedding
from bertkit.errors import usage_error
from bertkit.nn.cross_entropy import argmax_logits, sum_cross_entropy
from bertkit.nn.packing import find_true, pad_indices


def find_token_embedding(encoder: Encoder, objective: str, *, any_width: bool = False) -> nn.Embedding:
    """The token embeddings of ``encoder``, which ``objective`` uses as its output layer.

    They must be as wide as the hidden states; with ``any_width`` the objective maps the states to their width.
    """
    if not has_token_embedding(encoder):
        raise usage_error(
            f"task.objectives has {objective}, whose output layer is the token embedding of the encoder; "
            f"{type(encoder).__name__} has no property token_embedding."
        )
    width = encoder.token_embedding.weight.shape[1]
    if not any_width and width != encoder.hidden_size:
        raise usage_error(
            f"task.objectives has {objective}, whose output layer is the token embedding of the encoder; that of "
            f"{type(encoder).__name__} is {width} wide and its states are {encoder.hidden_size}: make them equal."
        )
    return encoder.token_embedding


class VocabularyHead(PretrainingObjective):
    """Labels are (B, T); only labelled positions are projected to the vocabulary, so ``logits`` are (M, V).

    A subclass computes the logits of the states that ``pick_rows`` returns. ``embedding`` belongs to the encoder: it is
    neither saved nor counted here.
    """

    reads_pooled = False
    predicts_vocabulary: ClassVar[bool] = True

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        # In a tuple, so that torch does not register the encoder's table a second time.
        self._tied = (embedding,)

    @property
    def output_weight(self) -> Float[Tensor, "V H"]:
        """The token embeddings of the encoder."""
        return self._tied[0].weight

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """The labelled positions; without labels, all."""
        return batch.labels[self.label] != IGNORE if self.label in batch.labels else None

    def pick_rows(self, states: EncoderOutput, batch: Batch) -> Float[Tensor, "N H"]:
        """The states of the labelled positions in reading order; of all positions if there are no labels.

        Unused rows at the end fill up N to a round number (see ``nn/packing.py``).
        """
        rows = states.hidden_states.flatten(0, 1)
        if self.label not in batch.labels:
            return rows
        labelled = find_true(batch.on_host.labels[self.label] != IGNORE)
        return rows[pad_indices(labelled).to(rows.device, non_blocking=True)]

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed over the labelled positions."""
        labels = self._labels(batch)
        return {self.label: LossTerm(sum_cross_entropy(outputs["logits"], labels), len(labels))}

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``mlm_accuracy`` or the like: positions whose highest logit is that of the label."""
        labels = self._labels(batch)
        right = (argmax_logits(outputs["logits"][: len(labels)]) == labels).sum()
        return {f"{self.label}_accuracy": LossTerm(right, len(labels))}

    def _labels(self, batch: Batch) -> Int[Tensor, " M"]:
        labels = batch.on_host.labels[self.label].flatten()
        return labels[find_true(labels != IGNORE)].to(batch.input_ids.device, non_blocking=True)
