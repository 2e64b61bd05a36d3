"""The bidirectional language model (ELMo, section 3.1): what does each direction read next?

Letters: B examples, T words, H hidden width, E = H / 2, V vocabulary, M asked words of both directions,
R right word and drawn ones.
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
from bertkit.contracts import Context, Encoder, PretrainingObjective, SubwordTokenizer
from bertkit.errors import usage_error
from bertkit.nn.cross_entropy import argmax_logits, sum_cross_entropy
from bertkit.nn.packing import pad_indices
from bertkit.nn.sampled_softmax import sample_logits, sample_words
from bertkit.objective_settings import ObjectiveSettings
from bertkit.rng import CounterRng

_SAMPLES = 8192


def label_words(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """(T, 2) for every word of a text the one behind it and the one before it; IGNORE at the ends.

    A long text is labelled whole and cut afterwards, so that no word goes unasked at a cut.
    """
    labels = np.full((len(words), 2), IGNORE, dtype=np.int64)
    labels[:-1, 0] = words[1:]
    labels[1:, 1] = words[:-1]
    return labels


class BidirectionalLanguageModel(PretrainingObjective):
    """One softmax over the vocabulary for both directions: the first half of a state tells the word behind, the second
    the word before.

    In training the softmax is over the right word and ``num_samples`` drawn ones, for which words have to be numbered
    by falling frequency (``nn/sampled_softmax.py``); with None, and in evaluation, it is over all. Departure from
    allenai/bilm-tf: both directions share one draw.
    """

    label = "bilm"
    context: ClassVar[Context] = "two_directions"
    rows: ClassVar[Literal["streams"]] = "streams"
    reads_pooled: ClassVar[bool] = False
    predicts_vocabulary: ClassVar[bool] = True

    def __init__(self, hidden_size: int, vocab_size: int, *, num_samples: int | None = _SAMPLES) -> None:
        super().__init__()
        assert hidden_size % 2 == 0, f"two directions cannot share a width of {hidden_size}"
        if num_samples is not None and not 0 < num_samples < vocab_size:
            raise usage_error(
                f"num_samples is {num_samples} and the vocabulary has {vocab_size} words; it must be between them, "
                "or None for a softmax over all."
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
    def add_labels(
        cls, batch: Batch, rng: CounterRng, tokenizer: SubwordTokenizer, settings: ObjectiveSettings
    ) -> Batch:
        """Nothing to add: the neighbours of a row's ends are outside the row, so the streams come with labels."""
        return batch

    @classmethod
    def default_settings(cls, vocab_size: int) -> Mapping[str, object]:
        """All words as targets, and 8,192 samples if there are more words (allenai/bilm-tf)."""
        return {"task.targets": vocab_size, "task.samples": _SAMPLES if vocab_size > _SAMPLES else None}

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """The words of which a neighbour is asked; without labels, all."""
        return (batch.labels[self.label] != IGNORE).any(dim=2) if self.label in batch.labels else None

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (M, V) of what is asked, word by word and the word behind before the word before; of every
        position without labels. In training with samples ``sampled`` (M, 1 + S), the right word first.

        Up to a round number (see ``nn/layout.py``) rows follow that nobody reads.
        """
        rows = states.hidden_states.reshape(-1, self.output.in_features)
        if self.label not in batch.labels:
            return {"logits": self.output(rows)}
        asked, right = self._asked(batch)
        rows = rows[pad_indices(asked).to(rows.device, non_blocking=True)]
        if self.num_samples is None or not self.training:
            return {"logits": self.output(rows)}
        right = pad_indices(right).to(rows.device, non_blocking=True)
        return {"sampled": self._sample(rows, right, self.num_samples)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed over the words that are asked, of both directions."""
        _, right = self._asked(batch)
        right = right.to(batch.input_ids.device, non_blocking=True)
        if "sampled" in outputs:
            total = sum_cross_entropy(outputs["sampled"], torch.zeros_like(right))
        else:
            total = sum_cross_entropy(outputs["logits"], right)
        return {self.label: LossTerm(total, len(right))}

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``bilm_accuracy``: words that have the highest logit of all; of samples it would say nothing."""
        if "sampled" in outputs:
            return {}
        _, right = self._asked(batch)
        found = argmax_logits(outputs["logits"][: len(right)])
        metrics = (found == right.to(found.device, non_blocking=True)).sum()
        return {f"{self.label}_accuracy": LossTerm(metrics, len(right))}

    def count_macs(self, batch: Batch) -> int:
        """The words that every asked one is compared with: all of the vocabulary, or the right one and the samples."""
        compared = self.output.out_features if self.num_samples is None or not self.training else 1 + self.num_samples
        return self.counts(batch)[self.label] * self.output.in_features * compared

    def _asked(self, batch: Batch) -> tuple[Int[Tensor, " M"], Int[Tensor, " M"]]:
        """Where words are asked, and which are right; on the host."""
        labels = batch.on_host.labels[self.label].flatten()
        asked = (labels != IGNORE).nonzero().squeeze(1)
        return asked, labels[asked]

    def _sample(self, rows: Float[Tensor, "M E"], right: Int[Tensor, " M"], count: int) -> Float[Tensor, "M R"]:
        samples = sample_words(count, self.output.out_features)
        return sample_logits(rows, right, self.output.weight, self.output.bias, samples)


def tiny(hidden_size: int, batch: Batch) -> tuple[BidirectionalLanguageModel, Batch]:
    """A small instance and ``batch`` with labels for it: for tests."""
    labels = torch.full((*batch.input_ids.shape, 2), IGNORE)
    for row, length in enumerate(batch.attention_mask.sum(dim=1).tolist()):
        labels[row, :length] = torch.from_numpy(label_words(batch.input_ids[row, :length].numpy()))
    head = BidirectionalLanguageModel(hidden_size, 99, num_samples=37)
    return head, batch.with_labels(**{BidirectionalLanguageModel.label: labels})
