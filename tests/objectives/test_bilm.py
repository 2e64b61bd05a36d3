"""The bidirectional language model: labels, full softmax and sampled softmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.errors import BertkitError
from bertkit.nn.sampled_softmax import sample_logits, sample_words
from bertkit.objectives.bilm import BidirectionalLanguageModel, label_words, tiny

H = 14


@pytest.fixture
def hidden() -> Tensor:
    return torch.randn(4, 13, H, requires_grad=True)


def states_of(hidden: Tensor) -> EncoderOutput:
    return EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0])


def test_labels_of_a_word_are_its_neighbours() -> None:
    assert label_words(np.array([7, 8, 9])).tolist() == [[8, IGNORE], [9, 7], [IGNORE, 8]]
    assert label_words(np.array([7])).tolist() == [[IGNORE, IGNORE]]


def full_loss(head: BidirectionalLanguageModel, hidden: Tensor, batch: Batch) -> Tensor:
    """The sum of torch's cross-entropies of both directions."""
    forward, backward = hidden[..., : H // 2], hidden[..., H // 2 :]
    rows = batch.input_ids.masked_fill(~batch.attention_mask, IGNORE)
    after, before = F.pad(rows[:, 1:], (0, 1), value=IGNORE), F.pad(rows[:, :-1], (1, 0), value=IGNORE)
    before = before.masked_fill(~batch.attention_mask, IGNORE)
    return sum(  # type: ignore[return-value]
        F.cross_entropy(head.output(side).flatten(0, 1), labels.flatten(), reduction="sum")
        for side, labels in ((forward, after), (backward, before))
    )


@pytest.mark.parametrize("training", [False, True])
def test_the_full_softmax_is_the_cross_entropy_of_torch(hidden: Tensor, padded_batch: Batch, training: bool) -> None:
    _, batch = tiny(H, padded_batch)
    head = BidirectionalLanguageModel(H, 99, num_samples=None).train(training)
    term = head.loss(head(states_of(hidden), batch), batch)["bilm"]
    expected = full_loss(head, hidden, batch)
    torch.testing.assert_close(term.sum, expected)
    assert term.count == 2 * sum(length - 1 for length in (13, 7, 11, 2)) == head.counts(batch)["bilm"]
    inputs = [hidden, *head.parameters()]
    gradients, reference = torch.autograd.grad(term.sum, inputs), torch.autograd.grad(expected, inputs)
    for gradient, expected_gradient in zip(gradients, reference, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-5)


def test_evaluation_uses_the_full_softmax(hidden: Tensor, padded_batch: Batch) -> None:
    head, batch = tiny(H, padded_batch)
    outputs = head.eval()(states_of(hidden), batch)
    torch.testing.assert_close(head.loss(outputs, batch)["bilm"].sum, full_loss(head, hidden, batch))
    assert head.metrics(outputs, batch)["bilm_accuracy"].count == 58


def test_training_uses_the_sampled_softmax(hidden: Tensor, padded_batch: Batch) -> None:
    head, batch = tiny(H, padded_batch)
    torch.manual_seed(5)
    outputs = head.train()(states_of(hidden), batch)
    torch.manual_seed(5)
    samples = sample_words(37, 99)
    total = torch.zeros(())
    for row in range(4):
        for position in range(13):
            for side, label in enumerate(batch.labels["bilm"][row, position]):
                if label != IGNORE:
                    state = hidden[row, position, side * H // 2 : (side + 1) * H // 2].unsqueeze(0)
                    logits = sample_logits(state, label.view(1), head.output.weight, head.output.bias, samples)
                    total = total - logits[0].log_softmax(dim=0)[0]
    term = head.loss(outputs, batch)["bilm"]
    torch.testing.assert_close(term.sum, total)
    assert term.count == 58
    assert head.metrics(outputs, batch) == {}
    term.sum.backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in (hidden, *head.parameters()))


@pytest.mark.parametrize("count", [0, -1, 99, 8192])
def test_invalid_numbers_of_samples_are_refused(count: int) -> None:
    with pytest.raises(BertkitError, match=f"task.samples is {count} and task.targets 99 words"):
        BidirectionalLanguageModel(H, 99, num_samples=count)
