"""A tag for every word, predicted at its first token (paper, section 5.3).

Letters: B examples, T tokens, H hidden width, C tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import nn

from bertkit.batch import IGNORE, Batch, EncoderOutput, Outputs
from bertkit.nn.dropout import HEAD_DROPOUT, Dropout
from bertkit.nn.init import initialize
from bertkit.objectives._word_positions import WordTagging


class TokenClassification(WordTagging):
    """Dropout and one linear layer on every token; tags are predicted independently, without a CRF.

    ``forward`` returns ``logits`` (B, T, C). Labels (B, T) are IGNORE on every token that does not begin a word.
    """

    label = "tags"
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier.weight": ("classifier.weight",),
        "classifier.bias": ("classifier.bias",),
    }

    def __init__(self, hidden_size: int, num_tags: int) -> None:
        super().__init__()
        self.dropout = Dropout(HEAD_DROPOUT)
        self.classifier = nn.Linear(hidden_size, num_tags)
        initialize(self)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (B, T, C)."""
        return {"logits": self.classifier(self.dropout(states.apply_head(states.hidden_states)))}


def tiny(hidden_size: int, batch: Batch) -> tuple[TokenClassification, Batch]:
    """A small instance and ``batch`` with labels for it, some missing, for tests."""
    labels = batch.input_ids % 5
    labels[~batch.attention_mask] = IGNORE
    labels[:, ::3] = IGNORE
    return TokenClassification(hidden_size, 5), batch.with_labels(
        **{TokenClassification.label: torch.as_tensor(labels)}
    )
