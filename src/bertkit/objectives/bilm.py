"""The bidirectional language model (ELMo, section 3.1): each direction predicts its next word.

Letters: B examples, T words, E width of one direction, V vocabulary, M predictions of both directions,
R the target and the samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Context, Encoder, PretrainingObjective
from bertkit.errors import usage_error
from bertkit.nn.cross_entropy import argmax_logits, sum_cross_entropy
from bertkit.nn.packing import find_true, pad_indices
from bertkit.nn.sampled_softmax import sample_logits, sample_words
from bertkit.objective_settings import ObjectiveSettings

_SAMPLES = 8192


def label_words(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """(T, 2) the word after and the word before every word of a text; IGNORE at the ends of the text.

    A long text is labelled before it is divided into rows, so that words at the ends of rows have labels too.
    """
    labels = np.full((len(words), 2), IGNORE, dtype=np.int64)
    labels[:-1, 0] = words[1:]
    labels[1:, 1] = words[:-1]
    return labels


class BidirectionalLanguageModel(PretrainingObjective):
    """One softmax for both directions: the first half of a state predicts the word after, the second the word before.

    In training the softmax is over the target and ``num_samples`` random words, for which the vocabulary must be sorted
    by falling frequency (``nn/sampled_softmax.py``); with None, and in evaluation, it is over all words. Unlike in
    allenai/bilm-tf, both directions share the samples.
    """

    label = "bilm"
    context: ClassVar[Context] = "two_directions"
    rows: ClassVar[Literal["streams"]] = "streams"
    reads_pooled = False
    predicts_vocabulary: ClassVar[bool] = True

    def __init__(self, hidden_size: int, vocab_size: int, *, num_samples: int | None = _SAMPLES) -> None:
        super().__init__()
        assert hidden_size % 2 == 0, f"hidden_size is {hidden_size}; two directions need an even one"
        if num_samples is not None and not 0 < num_samples < vocab_size:
            raise usage_error(
                f"task.samples is {num_samples} and task.targets {vocab_size} words; samples must be from 1 to "
                f"{vocab_size - 1}, or null for a softmax over all words."
            )
        self.num_samples = num_samples
        self.output = nn.Linear(hidden_size // 2, vocab_size)
        nn.init.normal_(self.output.weight, std=(hidden_size // 2) ** -0.5)
        nn.init.zeros_(self.output.bias)

    @classmethod
    def build(cls, encoder: Encoder, settings: ObjectiveSettings) -> Self:
        """A softmax over ``settings.targets`` words."""
        assert settings.targets is not None, "task.targets is checked by PretrainingTask"
        return cls(encoder.hidden_size, settings.targets, num_samples=settings.samples)

    @classmethod
    def default_settings(cls, vocab_size: int) -> Mapping[str, object]:
        """All words as targets, and 8,192 samples (allenai/bilm-tf) if there are at least twice as many words.

        To draw nearly all words without repetition takes seconds per step: 2.9 s for 8,192 of 8,193.
        """
        return {"task.targets": vocab_size, "task.samples": _SAMPLES if vocab_size >= 2 * _SAMPLES else None}

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """The words with a label in either direction; without labels, all."""
        return (batch.labels[self.label] != IGNORE).any(dim=2) if self.label in batch.labels else None

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (M, V): for every word the prediction of the word after it, then that of the word before it.

        Without labels all positions are predicted. In training with samples the output is ``sampled`` (M, R) instead,
        whose first column is the target.

        Unused rows at the end fill up M to a round number (see ``nn/packing.py``).
        """
        rows = states.hidden_states.reshape(-1, self.output.in_features)
        if self.label not in batch.labels:
            return {"logits": self.output(rows)}
        indices, targets = self._predictions(batch)
        rows = rows[pad_indices(indices).to(rows.device, non_blocking=True)]
        if self.num_samples is None or not self.training:
            return {"logits": self.output(rows)}
        targets = pad_indices(targets).to(rows.device, non_blocking=True)
        return {"sampled": self._sample(rows, targets, self.num_samples)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed over the predictions of both directions."""
        _, targets = self._predictions(batch)
        targets = targets.to(batch.input_ids.device, non_blocking=True)
        if "sampled" in outputs:
            total = sum_cross_entropy(outputs["sampled"], torch.zeros_like(targets))
        else:
            total = sum_cross_entropy(outputs["logits"], targets)
        return {self.label: LossTerm(total, len(targets))}

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``bilm_accuracy``: targets with the highest logit. With samples there is none."""
        if "sampled" in outputs:
            return {}
        _, targets = self._predictions(batch)
        found = argmax_logits(outputs["logits"][: len(targets)])
        correct = (found == targets.to(found.device, non_blocking=True)).sum()
        return {f"{self.label}_accuracy": LossTerm(correct, len(targets))}

    def count_macs(self, batch: Batch) -> int:
        """The multiply-accumulates with the output vectors of all words, or of a target and its samples in training."""
        num_words = self.output.out_features if self.num_samples is None else 1 + self.num_samples
        return self.counts(batch)[self.label] * self.output.in_features * num_words

    def _predictions(self, batch: Batch) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"]]:
        """The indices of all predictions in the flattened labels, and their targets; on the host."""
        labels = batch.on_host.labels[self.label].flatten()
        indices = find_true(labels != IGNORE)
        return indices, labels[indices]

    def _sample(self, rows: Float[Tensor, "M E"], targets: Int[Tensor, " M"], count: int) -> Float[Tensor, "M R"]:
        samples = sample_words(count, self.output.out_features)
        return sample_logits(rows, targets, self.output.weight, self.output.bias, samples)


def tiny(hidden_size: int, batch: Batch) -> tuple[BidirectionalLanguageModel, Batch]:
    """A small instance and ``batch`` with labels for it, for tests."""
    labels = torch.full((*batch.input_ids.shape, 2), IGNORE)
    for row, length in enumerate(batch.attention_mask.sum(dim=1).tolist()):
        labels[row, :length] = torch.from_numpy(label_words(batch.input_ids[row, :length].numpy()))
    head = BidirectionalLanguageModel(hidden_size, 99, num_samples=37)
    return head, batch.with_labels(**{BidirectionalLanguageModel.label: labels})
