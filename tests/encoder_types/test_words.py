"""Word inputs of the baselines: concatenated parts, ELMo on each text, and which weights are trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from bertkit.batch import Batch
from bertkit.encoder_types.elmo_network import ElmoConfig
from bertkit.encoder_types.words import WordReader, WordReaderConfig
from bertkit.errors import BertkitError

C, V, W, H = 7, 37, 5, 12
ELMO = ElmoConfig(word_length=C, character_width=3, filters=((1, 4), (3, 2)), cell_size=11, projection_size=H // 2)
CONFIG = WordReaderConfig(vocab_size=V, word_length=C, vector_size=W, filters=((2, 3), (4, 6)), elmo=ELMO)


@pytest.fixture
def reader() -> WordReader:
    return WordReader(CONFIG).eval()


@pytest.fixture
def batch() -> Batch:
    """A pair of 4 and 3 words, and a single text of 2 words."""
    real = torch.tensor([[True] * 7, [True] * 2 + [False] * 5])
    ids = torch.randint(1, V, (2, 7, 1 + C)) * real.unsqueeze(2)
    segment_ids = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0] * 7])
    return Batch(input_ids=ids, segment_ids=segment_ids, attention_mask=real, labels={})


def test_vectors_characters_and_elmo_are_concatenated(reader: WordReader, batch: Batch) -> None:
    assert reader.vectors is not None and reader.characters is not None
    read = reader(batch)
    assert read.shape == (2, 7, reader.width) and reader.width == W + 9 + H
    token = batch.input_ids[0, 5]
    assert torch.equal(read[0, 5, :W], reader.vectors.weight[token[0]])
    torch.testing.assert_close(read[0, 5, W : W + 9], reader.characters(token[None, 1:])[0])
    assert read.isfinite().all()


def test_elmo_encodes_each_text_of_a_pair_separately(reader: WordReader, batch: Batch) -> None:
    """Each text is its own row; the mixture is initialised as the mean of the layers."""
    read = reader(batch)[..., W + 9 :]
    for row, part in [(0, slice(0, 4)), (0, slice(4, 7)), (1, slice(0, 2))]:
        ids = batch.input_ids[row : row + 1, part]
        real = torch.ones(ids.shape[:2], dtype=torch.bool)
        assert reader.elmo is not None
        layers = reader.elmo(
            Batch(ids, torch.zeros_like(real, dtype=torch.long), real, {}), output_hidden_states=True
        ).layers
        torch.testing.assert_close(read[row, part], torch.stack(layers).mean(0)[0])


def test_elmo_is_not_trained_and_has_no_dropout(reader: WordReader, batch: Batch) -> None:
    reader.train()
    reader.dropout.rate = 0.0
    assert torch.equal(reader(batch), reader(batch))
    reader(batch).cos().sum().backward()
    trained = {name.partition(".")[0] for name, weight in reader.named_parameters() if weight.grad is not None}
    assert trained == {"characters", "mixture"}


def test_dropout_affects_the_mixture_only(reader: WordReader, batch: Batch) -> None:
    without_dropout = reader(batch)
    with_dropout = reader.train()(batch)
    assert torch.equal(without_dropout[..., : W + 9], with_dropout[..., : W + 9])
    assert not torch.equal(without_dropout[..., W + 9 :], with_dropout[..., W + 9 :])


def test_vectors_are_trained_with_train_vectors(batch: Batch) -> None:
    reader = WordReader(replace(CONFIG, train_vectors=True, elmo=None, filters=()))
    reader(batch).sum().backward()
    assert reader.vectors is not None and reader.vectors.weight.grad is not None
    assert not reader.vectors.weight.grad[0].any(), "the vector of padding"


def test_copied_weights_are_not_initialised_again(reader: WordReader) -> None:
    before = {name: weight.clone() for name, weight in reader.state_dict().items()}
    reader.reset_untrained_parameters()
    changed = {name.partition(".")[0] for name, weight in reader.state_dict().items() if not weight.equal(before[name])}
    assert changed == {"characters"}, "the mixture is initialised with constants"


def test_only_the_mixture_has_an_l2_penalty() -> None:
    assert WordReader(CONFIG).l2_penalties() == {}
    assert WordReader(replace(CONFIG, mixture_l2=0.1)).l2_penalties() == {"mixture.weights": 0.1}


@pytest.mark.parametrize("width", [C, C + 2])
def test_words_of_another_length_are_refused(reader: WordReader, batch: Batch, width: int) -> None:
    ids = F.pad(batch.input_ids, (0, width - 1 - C))
    with pytest.raises(BertkitError, match=f"tokens of {width} numbers; this model reads a word as {1 + C}"):
        reader(replace(batch, input_ids=ids))
    with pytest.raises(BertkitError, match="tokens without characters"):
        reader(replace(batch, input_ids=batch.input_ids[..., 0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vector_size": 0, "filters": (), "elmo": None}, "neither vectors nor filters nor ELMo"),
        ({"word_length": 9}, "word_length is 9, but that of elmo is 7"),
        ({"elmo_dropout": 1.0}, "elmo_dropout is 1.0"),
        ({"mixture_l2": -0.1}, "mixture_l2 is -0.1"),
        ({"vocab_size": 0}, "vocab_size is 0; it must be from 1 to"),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        replace(CONFIG, **changes)
