"""GLUE's baseline against its formulas, one row at a time; single texts and pairs; overfitting."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.encoders.pairs import make_pairs, overfit
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.data.features import collate
from bertkit.encoder_types.words import WordReaderConfig
from bertkit.encoders.bilstm_attention import BilstmAttention, BilstmAttentionConfig, tiny
from bertkit.errors import BertkitError
from bertkit.task_types import FileTask
from bertkit.tasks.glue import mrpc, sst2
from bertkit.text import words

WORD_LENGTH = 7
LENGTHS = ((5, 4), (2, 7), (3, 0), (1, 1))


def make_batch(lengths: tuple[tuple[int, int], ...] = LENGTHS) -> Batch:
    return make_pairs(lengths, word_length=1 + WORD_LENGTH)


def run_lstm(lstm: nn.Module, states: Tensor) -> Tensor:
    for layer in lstm.layers:  # type: ignore[union-attr]
        assert isinstance(layer, nn.LSTM)
        states = layer(states[None])[0][0]
    return states


def attend(own: Tensor, other: Tensor) -> Tensor:
    """Each word and its attention to the other text, with softmax over the products."""
    return torch.cat([own, (own @ other.T).softmax(dim=1) @ other], dim=1)


@torch.no_grad()
def test_the_network_is_the_published_one() -> None:
    network, batch = tiny().eval(), make_batch()
    states, read = network(batch), network.words(batch)
    for row, (first, second) in enumerate(LENGTHS):
        a = run_lstm(network.reading, read[row, :first])
        pooled = network.of_text(a.amax(dim=0))
        if second:
            b = run_lstm(network.reading, read[row, first : first + second])
            u, v = (run_lstm(network.comparing, each).amax(dim=0) for each in (attend(a, b), attend(b, a)))
            pooled = network.of_pair(torch.cat([u, v, (u - v).abs(), u * v]))
        torch.testing.assert_close(states.pooled[row], pooled.tanh(), rtol=0, atol=1e-5)


def test_the_defaults_have_the_published_sizes() -> None:
    """Two layers of 1,500 cells per direction on ELMo's 1,024, one on 6,000, and 3,000 or 12,000 to 512."""
    with torch.device("meta"):
        reader = WordReaderConfig(vocab_size=7, word_length=7, vector_size=1024)
        network = BilstmAttention(BilstmAttentionConfig(words=reader))
    inputs = (1024, 3000, 6000)
    lstms = sum(2 * 4 * 1500 * (width + 1500 + 2) for width in inputs)
    count = sum(weight.numel() for name, weight in network.named_parameters() if not name.startswith("words."))
    assert count == lstms + (3000 + 1) * 512 + (12_000 + 1) * 512


def test_a_single_text_does_not_depend_on_pairs_in_the_batch() -> None:
    network, batch = tiny().eval(), make_batch()
    alone = Batch(batch.input_ids[2:3, :3], batch.segment_ids[2:3, :3], batch.attention_mask[2:3, :3], {})
    torch.testing.assert_close(network(alone).pooled[0], network(batch).pooled[2])


def test_every_word_of_a_text_depends_on_the_other_text() -> None:
    network, batch = tiny().eval(), make_batch(((5, 4),))
    calls: list[Tensor] = []
    network.comparing.register_forward_hook(lambda layer, inputs, output: calls.append(output))
    network(batch)
    batch.input_ids[0, 7] = 33  # in the second text
    network(batch)
    assert (calls[0] != calls[2]).any(dim=2).all(), "every word of the first text changes"


def test_reset_initialises_all_parameters_but_those_of_elmo_and_the_mixture() -> None:
    network = tiny()
    before = {name: weight.clone() for name, weight in network.named_parameters()}
    network.reset_untrained_parameters()
    same = {name for name, weight in before.items() if torch.equal(weight, network.get_parameter(name))}
    assert {name for name in same if not name.startswith("words.elmo.")} == {
        "words.mixture.weights",
        "words.mixture.gamma",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width is 0; it must be from 1 to"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1."),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        BilstmAttentionConfig(words=tiny().config.words, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", [mrpc, sst2], ids=lambda task: task.name)
def test_it_overfits_a_few_texts_and_pairs(data_folder: Path, task: FileTask) -> None:
    examples = task.at(data_folder / task.files.home).examples("dev")[:5]
    texts = [text for each in examples for text in (each.first, each.second or "")]
    tokenizer = words.train(texts, word_length=WORD_LENGTH)
    batch = collate([feature for each in examples for feature in task.encode(each, tokenizer)], pad_id=0)
    reader = WordReaderConfig(vocab_size=tokenizer.vocab_size, word_length=7, train_vectors=True, vector_size=30)
    network = BilstmAttention(BilstmAttentionConfig(words=reader, width=20, hidden_size=30))
    outputs = overfit(task, network, batch, steps=25, lr=4e-3)
    assert outputs["logits"].argmax(dim=1).tolist() == batch.labels["class"].tolist()
