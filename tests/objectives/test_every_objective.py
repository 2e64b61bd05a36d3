"""Tests of every objective module; a new one is covered without an edit here."""

from __future__ import annotations

import importlib
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.contracts import Objective, PretrainingObjective
from bertkit.lookup import list_modules
from bertkit.named_objectives import find_objective, list_objectives
from bertkit.pretraining.task import PretrainingTask
from bertkit.rng import CounterRng
from bertkit.text import wordpiece

HIDDEN = 24
META = torch.device("meta")


@pytest.fixture(params=list_modules("objectives"))
def case(request: pytest.FixtureRequest, padded_batch: Batch) -> tuple[Objective, Batch]:
    objective, batch = importlib.import_module(f"bertkit.objectives.{request.param}").tiny(HIDDEN, padded_batch)
    assert isinstance(objective, Objective)
    return objective.eval(), batch


@pytest.fixture
def states() -> EncoderOutput:
    hidden = torch.randn(4, 13, HIDDEN, requires_grad=True)
    return EncoderOutput(
        hidden_states=hidden, pooled=torch.tanh(hidden[:, 0]), layers=(hidden / 2, hidden.sin(), hidden)
    )


def rows_of(states: EncoderOutput, batch: Batch, rows: slice) -> tuple[EncoderOutput, Batch]:
    part = Batch(
        input_ids=batch.input_ids[rows],
        segment_ids=batch.segment_ids[rows],
        attention_mask=batch.attention_mask[rows],
        labels={name: label[rows] for name, label in batch.labels.items()},
        rows_per_feature=None if batch.rows_per_feature is None else batch.rows_per_feature[rows],
    )
    layers = tuple(layer[rows] for layer in states.layers)
    return EncoderOutput(hidden_states=states.hidden_states[rows], pooled=states.pooled[rows], layers=layers), part


def test_gradients_reach_every_parameter_and_the_states(case: tuple[Objective, Batch], states: EncoderOutput) -> None:
    objective, batch = case
    sum(term.sum for term in objective.loss(objective(states, batch), batch).values()).backward()  # type: ignore[union-attr]
    unreached = [name for name, weight in objective.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert unreached == []
    assert states.hidden_states.grad is not None
    assert states.hidden_states.grad.any()


def test_counts_come_from_the_labels_and_agree_with_the_loss(
    case: tuple[Objective, Batch], states: EncoderOutput
) -> None:
    objective, batch = case
    terms = objective.loss(objective(states, batch), batch)
    assert objective.counts(batch) == {name: term.count for name, term in terms.items()}
    assert set(terms) == {objective.label}


def test_losses_of_parts_of_a_batch_add_up(case: tuple[Objective, Batch], states: EncoderOutput) -> None:
    objective, batch = case
    if isinstance(objective, PretrainingObjective) and objective.compares_examples:
        return  # the other parts of the batch are part of its loss

    def total(states: EncoderOutput, batch: Batch) -> torch.Tensor:
        return objective.loss(objective(states, batch), batch)[objective.label].sum

    parts = [total(*rows_of(states, batch, rows)) for rows in (slice(0, 1), slice(1, 4))]
    torch.testing.assert_close(parts[0] + parts[1], total(states, batch), rtol=1e-6, atol=1e-6)


def test_a_batch_without_labels_has_no_loss(case: tuple[Objective, Batch], states: EncoderOutput) -> None:
    objective, batch = case
    unlabelled = batch.with_labels(**{objective.label: torch.full_like(batch.labels[objective.label], IGNORE)})
    term = objective.loss(objective(states, unlabelled), unlabelled)[objective.label]
    assert (term.sum.item(), term.count) == (0.0, 0)
    term.sum.backward()  # type: ignore[no-untyped-call]


def test_outputs_need_no_labels(case: tuple[Objective, Batch], states: EncoderOutput, padded_batch: Batch) -> None:
    objective, _ = case
    for output in objective(states, padded_batch).values():
        assert output.isfinite().all()


def test_only_the_positions_of_reads_matter(case: tuple[Objective, Batch], states: EncoderOutput) -> None:
    objective, batch = case
    reads = objective.reads(batch)
    if reads is None:
        return
    layers = tuple(layer.masked_fill(~reads[..., None], float("nan")) for layer in states.layers)
    corrupted = EncoderOutput(hidden_states=layers[-1], pooled=states.pooled, layers=layers)
    expected = objective(states, batch)
    for name, output in objective(corrupted, batch).items():
        assert torch.equal(output, expected[name])


def test_metrics_are_bounded_by_their_count(case: tuple[Objective, Batch], states: EncoderOutput) -> None:
    objective, batch = case
    metrics = objective.metrics(objective(states, batch), batch)
    assert objective.label not in metrics, "losses and metrics are reported side by side"
    for term in metrics.values():
        assert 0 <= term.sum.item() <= term.count == objective.counts(batch)[objective.label]


def test_the_host_never_waits_for_the_device(case: tuple[Objective, Batch], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors on the device "meta" have no values: code that reads one, such as a count or a length, fails."""
    objective, batch = case
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # not implemented for "meta"
    # Tied embeddings belong to the encoder and are not moved with the objective.
    for module in (objective, *getattr(objective, "_tied", ())):
        module.to(META).train()
    moved = batch.to(META)
    hidden = torch.empty(4, 13, HIDDEN, device=META, requires_grad=True)
    states = EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0], layers=(hidden, hidden, hidden))
    outputs = objective(states, moved)
    objective.loss(outputs, moved)[objective.label].sum.backward()  # type: ignore[no-untyped-call]
    objective.metrics(outputs, moved)


@pytest.mark.parametrize("name", list_objectives())
def test_labels_of_a_row_depend_on_its_seed_epoch_and_index_alone(name: str, padded_batch: Batch) -> None:
    objective = find_objective(name)
    if objective.rows != "any":
        return  # its labels come with its rows
    tokenizer = wordpiece.train(["seven wide rivers ran slowly past the old stone mill"] * 3, vocab_size=99)

    def label(batch: Batch, indices: list[int]) -> Batch:
        rng = CounterRng(seed=5, epoch=3, indices=np.array(indices))
        return objective.add_labels(batch, rng, tokenizer, PretrainingTask())

    labelled = label(padded_batch, [37, 13, 7, 99])
    assert set(labelled.labels) == {objective.label}
    assert (labelled.labels[objective.label][~padded_batch.attention_mask] == IGNORE).all()
    _, alone = rows_of(EncoderOutput(torch.empty(4, 13, 24), torch.empty(4, 24)), padded_batch, slice(2, 3))
    again = label(alone, [7])
    assert torch.equal(again.input_ids, labelled.input_ids[2:3])
    assert torch.equal(again.labels[objective.label], labelled.labels[objective.label][2:3])
    assert torch.equal(labelled.attention_mask, padded_batch.attention_mask)
