"""ELMo's network: what each direction sees, its state between batches, and invalid configurations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bertkit.batch import Batch
from bertkit.encoders.elmo import Elmo, ElmoConfig, tiny
from bertkit.errors import BertkitError

B, T, C, E = 3, 5, 7, 6
LENGTHS = (5, 3, 4)


@pytest.fixture
def elmo() -> Elmo:
    return tiny().eval()


def make_batch(lengths: tuple[int, ...] = LENGTHS) -> Batch:
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = torch.randint(1, 262, (*real.shape, C)) * real.unsqueeze(2)
    return Batch(input_ids=ids, segment_ids=torch.zeros_like(real, dtype=torch.long), attention_mask=real, labels={})


def words_seen(elmo: Elmo, position: int, layer: int, side: slice) -> list[bool]:
    """For each word of the first row, whether one side of a layer's state at ``position`` depends on it.

    Every word has its own character, so that the gradient of the character embeddings shows it.
    """
    batch = make_batch()
    letters = torch.arange(1, 1 + B * T).view(B, T, 1).expand(B, T, C)
    states = elmo(replace(batch, input_ids=letters * batch.attention_mask.unsqueeze(2)), output_hidden_states=True)
    states.layers[layer][0, position, side].sum().backward()
    gradient = elmo.words.embedding.weight.grad
    assert gradient is not None
    seen = gradient[1:].any(dim=1)
    assert not seen[T:].any(), "another row was seen"
    return [bool(each) for each in seen[:T]]


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("position", range(T))
def test_forward_never_sees_the_future(elmo: Elmo, position: int, layer: int) -> None:
    assert words_seen(elmo, position, layer, slice(0, E)) == [at <= position for at in range(T)]


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("position", range(T))
def test_backward_never_sees_the_past(elmo: Elmo, position: int, layer: int) -> None:
    assert words_seen(elmo, position, layer, slice(E, None)) == [at >= position for at in range(T)]


def test_hidden_states_are_the_words_twice_and_then_both_directions(elmo: Elmo) -> None:
    states = elmo(make_batch(), output_hidden_states=True)
    assert [tuple(layer.shape) for layer in states.layers] == [(B, T, 2 * E)] * 3
    assert torch.equal(states.layers[0][..., :E], states.layers[0][..., E:])
    assert torch.equal(states.layers[-1], states.hidden_states)
    assert elmo(make_batch()).layers == ()


def test_the_pooled_state_is_the_final_state_of_each_direction(elmo: Elmo) -> None:
    states = elmo(make_batch())
    for row, length in enumerate(LENGTHS):
        assert torch.equal(states.pooled[row, :E], states.hidden_states[row, length - 1, :E])
        assert torch.equal(states.pooled[row, E:], states.hidden_states[row, 0, E:])


def test_a_skip_connection_adds_the_input_of_a_layer() -> None:
    """If the second layer outputs zero, the skip connection returns its input."""
    elmo = tiny().eval()
    for direction in elmo.directions:
        torch.nn.init.zeros_(direction[1].projection.weight)  # type: ignore[index]
    batch = make_batch()
    _, first, second = elmo(batch, output_hidden_states=True).layers
    assert torch.equal(second, first)
    elmo.config = replace(elmo.config, skip_connections=False)
    assert not elmo(batch).hidden_states.any()


def part_of(batch: Batch, words: slice, rows: int = B) -> Batch:
    return Batch(
        batch.input_ids[:rows, words], batch.segment_ids[:rows, words], batch.attention_mask[:rows, words], labels={}
    )


def test_a_stateful_encoder_reads_a_text_in_parts(elmo: Elmo) -> None:
    """Forward, the parts equal the whole. Backward, a part begins with the final state of the part before it."""
    elmo.stateful = True
    batch = make_batch((5, 5, 5))
    whole = elmo(batch).hidden_states
    elmo.load_state({})
    first = elmo(part_of(batch, slice(0, 2))).hidden_states
    second = elmo(part_of(batch, slice(2, 5))).hidden_states
    parts = torch.cat([first, second], dim=1)
    torch.testing.assert_close(parts[..., :E], whole[..., :E], rtol=0, atol=1e-6)
    elmo.load_state({})
    halves = part_of(batch, slice(0, 2)), part_of(batch, slice(2, 5))
    swapped = torch.cat([halves[1].input_ids, halves[0].input_ids], dim=1)
    # Backward over the second part after the first is backward over one row in which the second part comes first.
    one_row = elmo(replace(batch, input_ids=swapped)).hidden_states
    torch.testing.assert_close(second[..., E:], one_row[:, :3, E:], rtol=0, atol=1e-6)


def test_the_state_between_batches_has_no_gradient_and_can_be_reset(elmo: Elmo) -> None:
    batch = make_batch()
    fresh = elmo(batch).hidden_states
    assert torch.equal(elmo(batch).hidden_states, fresh), "an encoder is not stateful by default"
    elmo.stateful = True
    first = elmo(batch).hidden_states
    assert torch.equal(first, fresh)
    first.sum().backward()
    second = elmo(batch).hidden_states
    assert not torch.allclose(second, fresh)
    second.sum().backward()  # not through the batch before, whose graph is freed
    elmo.load_state({})
    assert torch.equal(elmo(batch).hidden_states, fresh)
    elmo.stateful = False
    assert torch.equal(elmo(batch).hidden_states, fresh)


def test_the_state_of_a_row_is_kept_when_the_number_of_rows_changes(elmo: Elmo) -> None:
    elmo.stateful = True
    batch = make_batch()
    fresh = elmo(batch).hidden_states
    expected = elmo(batch).hidden_states
    elmo.load_state({})
    elmo(part_of(batch, slice(None), rows=2))
    grown = elmo(batch).hidden_states
    torch.testing.assert_close(grown[:2], expected[:2], rtol=0, atol=1e-6)
    torch.testing.assert_close(grown[2], fresh[2], rtol=0, atol=1e-6)
    elmo.load_state({})
    elmo(batch)
    elmo(part_of(batch, slice(None), rows=1))
    torch.testing.assert_close(elmo(batch).hidden_states[1:], expected[1:], rtol=0, atol=1e-6)


def test_the_embedding_of_no_word_stays_zero() -> None:
    elmo = tiny()
    assert not elmo.words.embedding.weight[0].any()
    elmo(make_batch()).hidden_states.sum().backward()
    assert elmo.words.embedding.weight.grad is not None
    assert not elmo.words.embedding.weight.grad[0].any()


def test_the_id_before_the_characters_of_a_word_is_ignored(elmo: Elmo) -> None:
    batch = make_batch()
    numbers = torch.randint(1, 9999, (*batch.input_ids.shape[:2], 1))
    numbered = replace(batch, input_ids=torch.cat([numbers, batch.input_ids], dim=2))
    assert torch.equal(elmo(numbered).hidden_states, elmo(batch).hidden_states)


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((B, T), "a batch has no characters; this model reads words of 7."),
        ((B, T, 9), "a batch has words of 9 characters; this model reads words of 7."),
    ],
)
def test_tokens_without_characters_or_of_another_length_are_refused(
    elmo: Elmo, shape: tuple[int, ...], problem: str
) -> None:
    with pytest.raises(BertkitError, match=problem):
        elmo(replace(make_batch(), input_ids=torch.ones(shape, dtype=torch.long)))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cell_size": 0}, "cell_size is 0; it must be from 1 to"),
        ({"num_highways": -1}, "num_highways is -1; it must be from 0 to"),
        (
            {"filters": ((51, 3),)},
            r"filters has \(51, 3\); a width is at most word_length, 50.",
        ),
        ({"filters": ((2, 0),)}, "filters is 0; it must be from 1 to"),
        ({"filters": ()}, "filters is empty"),
        ({"activation": "gelu"}, 'activation is "gelu"; there are relu, tanh.'),
        ({"cell_clip": 0.0}, "cell_clip is 0.0; it must be above 0 and at most"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1."),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BertkitError, match=problem):
        ElmoConfig(**changes)


@torch.no_grad()
def test_weights_are_initialised_as_published() -> None:
    elmo = tiny()
    bounds = {
        "words.embedding.weight": 1,
        "words.convolutions.2.weight": 0.05,
        "directions.1.1.gates.weight": (6 / (2 * E + 4 * 11)) ** 0.5,
        "directions.1.1.projection.weight": (6 / (11 + E)) ** 0.5,
    }
    for name, bound in bounds.items():
        assert 0.8 * bound < float(elmo.get_parameter(name).abs().max()) <= bound, name
    for name in ("highways.1.carry.weight", "highways.0.transform.weight", "projection.weight"):
        assert 0.75 < float(elmo.get_parameter(name).std() * 17**0.5) < 1.25, name
    biases = {name: set(weight.tolist()) for name, weight in elmo.named_parameters() if name.endswith("bias")}
    assert all(found == ({-2} if "carry" in name else {0}) for name, found in biases.items())


def test_the_defaults_are_the_published_network() -> None:
    """93.6 million weights without the softmax, as published."""
    with torch.device("meta"):
        elmo = Elmo(ElmoConfig())
    assert round(sum(weight.numel() for weight in elmo.parameters()) / 1e6, 1) == 93.6
    assert elmo.hidden_size == 1024
