from __future__ import annotations

import torch
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch
from bertkit.objectives.token_classification import TokenClassification


def test_only_first_tokens_of_words_count(padded_batch: Batch) -> None:
    labels = torch.full((4, 13), IGNORE)
    labels[0, 1], labels[0, 4], labels[2, 3] = 2, 0, 1
    batch = padded_batch.with_labels(tags=labels)
    logits = torch.randn(4, 13, 3)
    head = TokenClassification(24, 3)
    term = head.loss({"logits": logits}, batch)["tags"]
    expected = sum(F.cross_entropy(logits[at], labels[at], reduction="sum") for at in ((0, 1), (0, 4), (2, 3)))
    torch.testing.assert_close(term.sum, expected)
    assert term.count == 3
