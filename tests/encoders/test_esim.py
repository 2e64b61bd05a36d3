"""ESIM against its formulas, one pair of texts at a time; what its texts tell each other; and that it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.encoders.pairs import learn_by_heart, make_pairs
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import Batch
from bertkit.data.features import collate
from bertkit.encoder_types.words import WordReaderConfig
from bertkit.encoders.esim import Esim, EsimConfig, tiny
from bertkit.errors import BertkitError
from bertkit.tasks.swag import swag
from bertkit.text import words

WORD_LENGTH = 7
LENGTHS = ((5, 4), (2, 7), (1, 1), (6, 3))


def make_batch(lengths: tuple[tuple[int, int], ...] = LENGTHS) -> Batch:
    return make_pairs(lengths, word_length=1 + WORD_LENGTH)


def run_lstm(layer: nn.Module, states: Tensor) -> Tensor:
    (layer,) = layer.layers  # type: ignore[misc]
    assert isinstance(layer, nn.LSTM)
    found: Tensor = layer(states[None])[0][0]
    return found


def compare(own: Tensor, other: Tensor, esim: Esim) -> Tensor:
    """Word by word: what it finds in the other text, by the softmax of their products."""
    rows = []
    for word in own:
        shares = torch.stack([word @ each for each in other]).softmax(0)
        found = sum(share * each for share, each in zip(shares, other, strict=True))
        rows.append(torch.cat([word, torch.as_tensor(found), word - found, word * found]))
    return F.relu(F.linear(torch.stack(rows), esim.projection.weight, esim.projection.bias))


@torch.no_grad()
def test_the_network_is_the_published_one() -> None:
    esim, batch = tiny().eval(), make_batch()
    states, read = esim(batch), esim.words(batch)
    for row, (first, second) in enumerate(LENGTHS):
        a, b = (run_lstm(esim.encoding, read[row, part]) for part in (slice(first), slice(first, first + second)))
        compared = [compare(a, b, esim), compare(b, a, esim)]
        composed = [run_lstm(esim.composition, each) for each in compared]
        told = torch.cat([part for each in composed for part in (each.mean(dim=0), each.max(dim=0).values)])
        expected = F.relu(F.linear(told, esim.output.weight, esim.output.bias))
        torch.testing.assert_close(states.pooled[row], expected, rtol=0, atol=1e-5)
        hidden = states.hidden_states[row]
        torch.testing.assert_close(hidden[: first + second], torch.cat(compared), rtol=0, atol=1e-5)
        assert not hidden[first + second :].any()


def test_the_defaults_have_the_published_sizes() -> None:
    """Two LSTMs of 300 cells a direction, 2,400 to 300 twice; counted by hand, words apart."""
    with torch.device("meta"):
        esim = Esim(EsimConfig(words=WordReaderConfig(vocab_size=7, word_length=7, vector_size=300)))
    lstms = 2 * 2 * 4 * 300 * (300 + 300 + 2)
    count = sum(weight.numel() for name, weight in esim.named_parameters() if not name.startswith("words."))
    assert count == lstms + 2 * (2400 + 1) * 300


def test_a_word_is_compared_with_the_other_text_and_not_with_other_rows() -> None:
    esim, batch = tiny().eval(), make_batch()
    before = esim(batch).hidden_states
    batch.input_ids[0, 7] = 33  # in the second text
    after = esim(batch).hidden_states
    assert (after[0, :9] != before[0, :9]).any(dim=1).all()
    assert torch.equal(after[1:], before[1:])


def test_one_text_alone_is_read_too() -> None:
    states = tiny().eval()(make_batch(((5, 0), (3, 0))))
    assert states.pooled.isfinite().all()
    assert states.hidden_states.shape == (2, 5, 7)


def test_a_new_draw_is_another_network() -> None:
    esim = tiny()
    before = {name: weight.clone() for name, weight in esim.named_parameters() if not name.startswith("words.")}
    esim.reset_untrained_parameters()
    same = {name for name, weight in before.items() if torch.equal(weight, esim.get_parameter(name))}
    assert same == {"projection.bias", "output.bias"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"hidden_size": 0}, "hidden_size is 0; it must be 1 or more."),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1."),
    ],
)
def test_a_configuration_without_a_sense_cannot_be_made(changes: dict[str, float], problem: str) -> None:
    with pytest.raises(BertkitError, match=problem):
        EsimConfig(words=WordReaderConfig(vocab_size=7, word_length=7, vector_size=5), **changes)  # type: ignore[arg-type]


def test_it_learns_questions_by_heart(data_folder: Path) -> None:
    examples = swag.with_files(train=[data_folder / "swag" / "codah-train.csv"]).examples("train")[:8]
    tokenizer = words.train(
        [text for each in examples for text in (each.prompt, *each.choices)], word_length=WORD_LENGTH
    )
    batch = collate([feature for each in examples for feature in swag.encode(each, tokenizer)], pad_id=tokenizer.pad_id)
    reader = WordReaderConfig(vocab_size=tokenizer.vocab_size, word_length=7, train_vectors=True, vector_size=30)
    esim = Esim(EsimConfig(words=reader, hidden_size=30, dropout=0.1))
    outputs = learn_by_heart(swag, esim, batch, steps=40, rate=4e-3)
    assert outputs["logits"].argmax(dim=1).tolist() == [each.label for each in examples]
