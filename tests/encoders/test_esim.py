"""ESIM against its formulas, one pair of texts at a time; which words see which; overfitting."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.encoders.pairs import make_pairs, overfit
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
    output: Tensor = layer(states[None])[0][0]
    return output


def compare(own: Tensor, other: Tensor, esim: Esim) -> Tensor:
    """Each word against its attention to the other text, with softmax over the products."""
    rows = []
    for word in own:
        attention = torch.stack([word @ each for each in other]).softmax(0)
        attended = sum(share * each for share, each in zip(attention, other, strict=True))
        rows.append(torch.cat([word, torch.as_tensor(attended), word - attended, word * attended]))
    return F.relu(F.linear(torch.stack(rows), esim.projection.weight, esim.projection.bias))


@torch.no_grad()
def test_the_network_is_the_published_one() -> None:
    esim, batch = tiny().eval(), make_batch()
    states, read = esim(batch), esim.words(batch)
    for row, (first, second) in enumerate(LENGTHS):
        a, b = (run_lstm(esim.encoding, read[row, part]) for part in (slice(first), slice(first, first + second)))
        compared = [compare(a, b, esim), compare(b, a, esim)]
        composed = [run_lstm(esim.composition, each) for each in compared]
        pooled = torch.cat([part for each in composed for part in (each.mean(dim=0), each.max(dim=0).values)])
        expected = F.relu(F.linear(pooled, esim.output.weight, esim.output.bias))
        torch.testing.assert_close(states.pooled[row], expected, rtol=0, atol=1e-5)
        hidden = states.hidden_states[row]
        torch.testing.assert_close(hidden[: first + second], torch.cat(compared), rtol=0, atol=1e-5)
        assert not hidden[first + second :].any()


def test_the_defaults_have_the_published_sizes() -> None:
    """Two LSTMs of 300 cells per direction and two projections of 2,400 to 300; word vectors are not counted."""
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


def test_a_single_text_is_encoded() -> None:
    states = tiny().eval()(make_batch(((5, 0), (3, 0))))
    assert states.pooled.isfinite().all()
    assert states.hidden_states.shape == (2, 5, 7)


def test_reset_changes_all_randomly_initialised_parameters() -> None:
    esim = tiny()
    before = {name: weight.clone() for name, weight in esim.named_parameters() if not name.startswith("words.")}
    esim.reset_untrained_parameters()
    same = {name for name, weight in before.items() if torch.equal(weight, esim.get_parameter(name))}
    assert same == {"projection.bias", "output.bias"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 0}, "hidden_size is 0; it must be from 1 to"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1."),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        EsimConfig(words=WordReaderConfig(vocab_size=7, word_length=7, vector_size=5), **changes)  # type: ignore[arg-type]


def test_it_overfits_a_few_questions(data_folder: Path) -> None:
    examples = swag.with_files(train=[data_folder / "swag" / "codah-train.csv"]).examples("train")[:8]
    tokenizer = words.train(
        [text for each in examples for text in (each.prompt, *each.choices)], word_length=WORD_LENGTH
    )
    batch = collate([feature for each in examples for feature in swag.encode(each, tokenizer)], pad_id=tokenizer.pad_id)
    reader = WordReaderConfig(vocab_size=tokenizer.vocab_size, word_length=7, train_vectors=True, vector_size=30)
    esim = Esim(EsimConfig(words=reader, hidden_size=30, dropout=0.1))
    outputs = overfit(swag, esim, batch, steps=40, lr=4e-3)
    assert outputs["logits"].argmax(dim=1).tolist() == [each.label for each in examples]
