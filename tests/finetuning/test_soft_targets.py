from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bertkit.batch import Batch
from bertkit.finetuning.soft_targets import SoftTargets
from bertkit.objectives.sequence_classification import SequenceClassification

TEACHER = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [1.0, 0.0, 0.0], [0.3, 0.3, 0.4]])
LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 0.0, 3.0], [4.0, 1.0, -2.0], [0.1, 0.2, 0.3]])


def loss(batch: Batch, logits: torch.Tensor, temperature: float) -> float:
    head = SoftTargets(SequenceClassification(24, 3), temperature=temperature)
    term = head.loss({"logits": logits}, batch.with_labels(teacher=TEACHER))["teacher"]
    assert term.count == 4
    return float(term.sum)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 7.0])
def test_the_loss_is_the_divergence_of_softened_probabilities(padded_batch: Batch, temperature: float) -> None:
    softened = TEACHER[[0, 1, 3]] ** (1 / temperature)
    softened = softened / softened.sum(dim=1, keepdim=True)
    ours = torch.softmax(LOGITS[[0, 1, 3]] / temperature, dim=1)
    expected = temperature**2 * (softened * (softened / ours).log()).sum()
    without = LOGITS.clone()
    without[2] = (TEACHER[2].clamp(min=1e-9)).log()  # the third row agrees, and adds nothing
    assert loss(padded_batch, without, temperature) == pytest.approx(float(expected), rel=1e-4)


def test_at_temperature_1_the_gradient_is_that_of_cross_entropy(padded_batch: Batch) -> None:
    head = SoftTargets(SequenceClassification(24, 3), temperature=1.0)
    ours, theirs = (LOGITS.clone().requires_grad_() for _ in range(2))
    total = head.loss({"logits": ours}, padded_batch.with_labels(teacher=TEACHER))["teacher"].sum
    (found,) = torch.autograd.grad(total, ours)
    (expected,) = torch.autograd.grad(F.cross_entropy(theirs, TEACHER, reduction="sum"), theirs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_the_head_is_the_one_of_the_task() -> None:
    head = SequenceClassification(24, 3)
    assert dict(SoftTargets(head, temperature=2.0).named_parameters()).keys() == {
        "head.classifier.weight",
        "head.classifier.bias",
    }
