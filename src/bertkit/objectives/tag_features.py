"""Which tag for every word, from the layers of an encoder that is not trained (paper, section 5.3, Table 7).

Letters: B examples, T tokens, W words of the longest example, H hidden width, I input width, C tags.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.contracts import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Objective, Outputs
from bertkit.nn.dropout import Dropout
from bertkit.nn.init import BERT_SIGMA, initialize
from bertkit.nn.layout import Layout, choose
from bertkit.nn.lstm import BiLstm
from bertkit.nn.mixture import Mixture
from bertkit.objectives._words import count_hits, sum_losses

WORD_STARTS = "word_starts"
"""The entry of ``Batch.labels`` that is 1 on tokens that begin a word; without it every token is one."""


class TagFeatures(Objective):
    """A mixture of the layers at the first token of each word, a BiLSTM over the words, and one linear layer.

    ``forward`` gives ``logits`` (B, T, C), zero on tokens that do not begin a word.
    """

    label = "word_tags"
    reads_pooled: ClassVar[bool] = False
    reads_layers: ClassVar[bool] = True

    def __init__(
        self, mixture: Mixture, num_tags: int, *, width: int = 768, num_layers: int = 2, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.mixture = mixture
        self.lstm = BiLstm(mixture.width, width, num_layers, dropout)
        self.dropout = Dropout(dropout)
        self.classifier = nn.Linear(width, num_tags)
        initialize(self.classifier, BERT_SIGMA)

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """The first token of every word."""
        starts = batch.labels.get(WORD_STARTS)
        return batch.attention_mask if starts is None else starts == 1

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (B, T, C)."""
        device = batch.input_ids.device
        starts = self.reads(batch.on_host)
        rows, width = starts.shape
        places, there = _find_words(starts)
        places = places.to(device, non_blocking=True)
        words = self.mixture([_pick(layer, places) for layer in states.layers])
        logits = self.classifier(self.dropout(self.lstm(words, there)))
        said = choose(logits.flatten(0, 1), _number(there & starts.any(dim=1, keepdim=True)).to(device))
        return {"logits": Layout(rows, width, _number(starts).to(device)).spread(said)}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed over the words."""
        total = sum_losses(outputs["logits"], batch.labels[self.label])
        return {self.label: LossTerm(total, self.counts(batch)[self.label])}

    def hits(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """``word_tags_accuracy``: words whose highest logit is the label's."""
        right = count_hits(outputs["logits"], batch.labels[self.label])
        return {f"{self.label}_accuracy": LossTerm(right, self.counts(batch)[self.label])}


def _find_words(starts: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, "B W"], Bool[Tensor, "B W"]]:
    """Where each row's words begin, and which there are. A row without any has its first token for one."""
    counts = starts.sum(dim=1).clamp(min=1)
    most = int(counts.max())
    places = (~starts).byte().argsort(dim=1, stable=True)[:, :most]
    return places, torch.arange(most, device=starts.device) < counts[:, None]


def _number(places: Bool[Tensor, "B T"]) -> Int[Tensor, " N"]:
    """The numbers of these places, row by row."""
    return places.flatten().nonzero().squeeze(1)


def _pick(states: Float[Tensor, "B T H"], places: Int[Tensor, "B W"]) -> Float[Tensor, "B W H"]:
    return states.gather(1, places[:, :, None].expand(-1, -1, states.shape[-1]))


def specimen(hidden_size: int, batch: Batch) -> tuple[TagFeatures, Batch]:
    """A small instance and ``batch`` with labels for it, some missing: what the shelf's tests run on."""
    starts = (batch.input_ids % 3 > 0) & batch.attention_mask
    labels = (batch.input_ids % 5).masked_fill(~starts, IGNORE)
    head = TagFeatures(Mixture("sum-all", 2, hidden_size), 5, width=14)
    return head, batch.with_labels(**{TagFeatures.label: labels, WORD_STARTS: starts.long()})
