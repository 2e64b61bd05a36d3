"""A model: objectives that share one pass, gradients of micro-batches, tied weights, saving and loading."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bertkit.batch import Batch, LossTerm
from bertkit.contracts import Encoder
from bertkit.encoders import bert
from bertkit.model import Model
from bertkit.objectives import mlm
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.training.flops import count_flops


@pytest.fixture
def model() -> Model:
    encoder = bert.tiny()
    return Model(
        encoder,
        {"mlm": MaskedLanguageModel(encoder.embeddings.word), "nsp": NextSentencePrediction(encoder.hidden_size)},
    )


@pytest.fixture
def batch(padded_batch: Batch) -> Batch:
    _, labelled = mlm.tiny(12, padded_batch)
    return labelled.with_labels(nsp=torch.tensor([0, 1, 1, 0]))


def part_of(batch: Batch, rows: slice) -> Batch:
    return Batch(
        input_ids=batch.input_ids[rows],
        segment_ids=batch.segment_ids[rows],
        attention_mask=batch.attention_mask[rows],
        labels={name: label[rows] for name, label in batch.labels.items()},
    )


def gradients(model: Model, parts: list[Batch]) -> dict[str, torch.Tensor]:
    """Gradients of the mean losses over all ``parts`` taken as one step."""
    model.zero_grad()
    counts = {name: sum(model.counts(part)[name] for part in parts) for name in model.counts(parts[0])}
    for part in parts:
        terms = model.loss(model(part), part)
        sum(term.sum / counts[name] for name, term in terms.items()).backward()  # type: ignore[union-attr]
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def test_objectives_share_one_pass(model: Model, batch: Batch) -> None:
    outputs = model(batch)
    assert set(outputs) == {"mlm", "nsp"}
    terms = model.loss(outputs, batch)
    assert model.counts(batch) == {name: term.count for name, term in terms.items()}
    assert set(model.metrics(outputs, batch)) == {"mlm_accuracy", "nsp_accuracy", "nsp_random"}


def test_a_frozen_encoder_counts_no_backward_pass(model: Model, batch: Batch) -> None:
    encoder, heads = model.count_macs(batch) or (0, 0)
    assert min(encoder, heads) > 0
    assert count_flops(model, batch) == 2 * 3 * (encoder + heads)
    model.encoder.requires_grad_(False)
    assert model.count_macs(batch) == (encoder, heads)
    assert count_flops(model, batch) == 2 * encoder + 2 * 3 * heads


def test_the_weight_of_a_term_multiplies_that_of_its_objective(
    model: Model, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = model.heads["mlm"]
    terms = {"a": LossTerm(torch.zeros(()), 1, weight=0.5), "b": LossTerm(torch.zeros(()), 1)}
    monkeypatch.setattr(type(objective), "loss", lambda self, outputs, batch: terms)
    objective.weight = 3.0
    found = model.loss(model(batch), batch)
    assert (found["a"].weight, found["b"].weight) == (1.5, 3.0)


def test_an_encoder_that_does_not_count_its_operations_leaves_the_model_without_a_count(
    model: Model, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(model.encoder), "count_macs", Encoder.count_macs)
    assert model.count_macs(batch) is None
    assert count_flops(model, batch) == 0


def test_micro_batches_give_the_gradient_of_the_whole_batch(model: Model, batch: Batch) -> None:
    model.eval()
    expected = gradients(model, [batch])
    split = gradients(model, [part_of(batch, slice(0, 1)), part_of(batch, slice(1, 4))])
    assert set(expected) == {name for name, _ in model.named_parameters()}
    for name, gradient in expected.items():
        torch.testing.assert_close(split[name], gradient, rtol=1e-5, atol=1e-6)


def test_tied_weights_are_one_parameter_also_in_a_copy(model: Model, batch: Batch) -> None:
    assert sum("word" in name for name, _ in model.named_parameters()) == 1
    head = model.objectives["mlm"]
    assert isinstance(head, MaskedLanguageModel)
    copied = copy.deepcopy(model)
    copied_head = copied.objectives["mlm"]
    assert isinstance(copied_head, MaskedLanguageModel)
    assert isinstance(copied.encoder, bert.Bert)
    assert copied_head._tied[0] is copied.encoder.embeddings.word
    assert copied_head._tied[0] is not head._tied[0]


def test_save_and_load_are_bit_equal(model: Model, batch: Batch, tmp_path: Path) -> None:
    model.eval()
    before = model(batch)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    for weight in model.parameters():
        torch.nn.init.constant_(weight, 0.37)
    model.load_state_dict(load_file(tmp_path / "model.safetensors"))
    after = model(batch)
    assert all(torch.equal(after[name]["logits"], before[name]["logits"]) for name in before)


def test_two_objectives_cannot_share_a_label() -> None:
    encoder = bert.tiny()
    with pytest.raises(AssertionError, match="same label"):
        Model(encoder, {"first": SequenceClassification(12, 3), "second": SequenceClassification(12, 5)})


def test_training_lowers_the_loss(model: Model, batch: Batch) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def total() -> torch.Tensor:
        terms = model.loss(model(batch), batch)
        return torch.stack([term.sum / term.count for term in terms.values()]).sum()

    first = total()
    for _ in range(30):
        optimizer.zero_grad()
        total().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert total().item() < 0.6 * first.item()
