"""A tag for every word, from the layers of a frozen encoder (paper, section 5.3, Table 7).

Letters: B examples, T tokens, C tags.
"""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Bool
from torch import Tensor, nn

from bertkit.batch import IGNORE, WORD_STARTS, Batch, EncoderOutput, Outputs
from bertkit.nn.dropout import HEAD_DROPOUT, Dropout
from bertkit.nn.init import initialize
from bertkit.nn.lstm import BiLstm
from bertkit.nn.mixture import LayerMixture
from bertkit.objectives._word_positions import WordTagging, find_starts, find_words, pick, place_words


class FeatureTagging(WordTagging):
    """A mixture of the layers at the first token of each word, a BiLSTM over the words, and one linear layer.

    ``forward`` returns ``logits`` (B, T, C), zero on tokens that do not begin a word.
    """

    label = "word_tags"
    reads_layers: ClassVar[bool] = True
    freezes_encoder: ClassVar[bool] = True

    def __init__(self, mixture: LayerMixture, num_tags: int, *, width: int = 768) -> None:
        super().__init__()
        self.mixture = mixture
        self.lstm = BiLstm(mixture.width, width, num_layers=2, dropout=HEAD_DROPOUT)
        self.dropout = Dropout(HEAD_DROPOUT)
        self.classifier = nn.Linear(width, num_tags)
        initialize(self.classifier)

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """The first token of every word."""
        return find_starts(batch)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (B, T, C)."""
        starts = self.reads(batch.on_host)
        columns, is_word = find_words(starts, batch.input_ids.device)
        words = self.mixture([pick(layer, columns) for layer in states.layers])
        logits = self.classifier(self.dropout(self.lstm(words, is_word)))
        return {"logits": place_words(logits, is_word, starts)}


def tiny(hidden_size: int, batch: Batch) -> tuple[FeatureTagging, Batch]:
    """A small instance and ``batch`` with labels for it, some missing, for tests."""
    starts = (batch.input_ids % 3 > 0) & batch.attention_mask
    labels = (batch.input_ids % 5).masked_fill(~starts, IGNORE)
    head = FeatureTagging(LayerMixture("sum-all", 2, hidden_size), 5, width=14)
    return head, batch.with_labels(**{FeatureTagging.label: labels, WORD_STARTS: starts.long()})
