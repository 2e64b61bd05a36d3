"""Answer spans: the loss over real tokens only, and the accuracy of starts and ends."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from bertkit.batch import Batch, EncoderOutput
from bertkit.objectives.span_extraction import SpanExtraction


def test_the_loss_is_the_mean_of_both_cross_entropies_over_real_tokens(padded_batch: Batch) -> None:
    head = SpanExtraction(24)
    labels = torch.tensor([[3, 12], [0, 0], [10, 10], [1, 1]])
    batch = padded_batch.with_labels(span=labels)
    hidden = torch.randn(4, 13, 24)
    outputs = head(EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0]), batch)
    losses = []
    for row, length in enumerate([13, 7, 11, 2]):
        for column, name in enumerate(("start", "end")):
            losses.append(F.cross_entropy(outputs[name][row, :length], labels[row, column]))
    term = head.loss(outputs, batch)["span"]
    torch.testing.assert_close(term.sum / term.count, torch.stack(losses).mean())
    assert term.count == head.counts(batch)["span"] == 8


def test_padding_has_no_gradient(padded_batch: Batch) -> None:
    head = SpanExtraction(24)
    batch = padded_batch.with_labels(span=torch.tensor([[3, 12], [0, 0], [10, 10], [1, 1]]))
    hidden = torch.randn(4, 13, 24, requires_grad=True)
    head.loss(head(EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0]), batch), batch)["span"].sum.backward()  # type: ignore[no-untyped-call]
    assert hidden.grad is not None
    assert not hidden.grad[~batch.attention_mask].any()
    assert hidden.grad[batch.attention_mask].any(dim=-1).all()
