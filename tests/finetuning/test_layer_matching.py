"""Matching layers: the loss, its gradient, and the layers of the teacher that are its targets."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch

from bertkit.batch import Batch
from bertkit.encoders import bert
from bertkit.finetuning.layer_matching import MatchedLayers, choose_layers, predict_layer_means
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.task_types import TextExample, TextTask


def loss(batch: Batch, ours: torch.Tensor, theirs: torch.Tensor) -> float:
    term = MatchedLayers(1.0).loss({"means": ours}, batch.with_labels(teacher_layers=theirs))["teacher_layers"]
    assert term.count == len(ours)
    return float(term.sum) / len(ours)


def reference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """1 - CKA by its definition with cross-covariances (Kornblith et al., equation 4)."""
    one, other = (states - states.mean(dim=0) for states in (ours.double(), theirs.double()))
    return 1 - float((other.T @ one).norm() ** 2 / ((one.T @ one).norm() * (other.T @ other).norm()))


def test_the_loss_is_1_minus_cka(padded_batch: Batch) -> None:
    generator = torch.Generator().manual_seed(3)
    ours, theirs = (torch.randn(4, 2, width, generator=generator) for width in (24, 40))
    expected = (reference(ours[:, 0], theirs[:, 0]) + reference(ours[:, 1], theirs[:, 1])) / 2
    assert loss(padded_batch, ours, theirs) == pytest.approx(expected, abs=1e-5)


def test_a_rotation_a_factor_and_a_shift_change_nothing(padded_batch: Batch) -> None:
    generator = torch.Generator().manual_seed(4)
    theirs = torch.randn(4, 1, 24, generator=generator)
    rotation, _ = torch.linalg.qr(torch.randn(24, 24, generator=generator))
    assert loss(padded_batch, 3 * theirs @ rotation + 5, theirs) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("texts", [1, 2])
def test_fewer_texts_than_can_be_compared_do_not_count(texts: int) -> None:
    head, ids = MatchedLayers(1.0), torch.ones(texts, 3, dtype=torch.long)
    labels = {"teacher_layers": torch.randn(texts, 1, 7)}
    batch = Batch(input_ids=ids, segment_ids=0 * ids, attention_mask=ids > 0, labels=labels)
    term = head.loss({"means": torch.randn(texts, 1, 5, requires_grad=True)}, batch)["teacher_layers"]
    assert (term.sum.item(), term.count, head.counts(batch)) == (0.0, 0, {"teacher_layers": 0})


def test_the_loss_is_computed_in_float32(padded_batch: Batch) -> None:
    theirs = torch.randn(4, 1, 24, generator=torch.Generator().manual_seed(5))
    ours = theirs + 0.01 * torch.randn(4, 1, 24, generator=torch.Generator().manual_seed(6))
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(padded_batch, ours, theirs)
    assert found == pytest.approx(loss(padded_batch, ours, theirs), rel=1e-6)


def test_every_layer_of_the_student_is_trained(padded_batch: Batch) -> None:
    torch.manual_seed(0)
    model = Model(bert.Bert(bert.size("3/32/2", vocab_size=99)), {"teacher_layers": MatchedLayers(1.0)})
    assert not model.frozen
    labelled = padded_batch.with_labels(teacher_layers=torch.randn(len(padded_batch), 3, 40))
    outputs = model(labelled)
    assert outputs["teacher_layers"]["means"].shape == (len(padded_batch), 3, 32)
    model.loss(outputs, labelled)["teacher_layers"].sum.backward()  # type: ignore[no-untyped-call]
    without = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert all(name.startswith("encoder.pooler.") for name in without)


@pytest.mark.parametrize(
    ("layers", "depth", "expected"), [(2, 6, [3, 6]), (4, 6, [2, 3, 5, 6]), (3, 2, [1, 2, 2]), (1, 12, [12])]
)
def test_layers_are_matched_by_how_far_up_they_are(layers: int, depth: int, expected: list[int]) -> None:
    assert choose_layers(layers, depth) == expected


def test_targets_are_the_means_of_the_states_of_the_teacher(workspace: Path) -> None:
    teacher = load(workspace / "tuned")
    texts = ["the river", "a stone by the old river"]
    found = predict_layer_means(teacher, cast(TextTask, teacher.task), [TextExample(text, text) for text in texts], 1)
    means = teacher.embed(texts, pool="mean", layers=[teacher.encoder.num_layers])
    np.testing.assert_allclose(np.stack(found)[:, 0], means, atol=2e-3)
