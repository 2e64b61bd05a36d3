from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.batch import Batch
from bertkit.encoder_types.words import WordReaderConfig
from bertkit.encoders.tagger import Tagger, TaggerConfig, tiny
from bertkit.errors import BertkitError


@pytest.fixture
def words(padded_batch: Batch) -> Batch:
    """Words of nine numbers: the id, and eight characters made of it."""
    return replace(padded_batch, input_ids=padded_batch.input_ids.unsqueeze(2) * torch.arange(1, 10) % 101)


def test_the_pooled_state_is_the_maximum_over_the_words_of_a_row(words: Batch) -> None:
    states = tiny().eval()(words)
    for row, length in enumerate(words.attention_mask.sum(dim=1).tolist()):
        assert torch.equal(states.pooled[row], states.hidden_states[row, :length].amax(dim=0))


def test_the_mixture_of_elmo_layers_has_a_penalty() -> None:
    assert tiny().l2_penalties() == {"words.mixture.weights": 0.1}


def test_elmo_and_the_vectors_keep_their_weights_when_the_rest_is_initialised_again() -> None:
    tagger = tiny()
    before = {name: weight.clone() for name, weight in tagger.named_parameters()}
    tagger.reset_untrained_parameters()
    kept = {name for name, weight in tagger.named_parameters() if torch.equal(weight, before[name])}
    assert {name for name in kept if name.startswith("lstm.")} == set()
    assert {name for name in before if name.startswith(("words.elmo.", "words.vectors."))} <= kept


def test_invalid_configurations_are_refused() -> None:
    reader = WordReaderConfig(vocab_size=7, word_length=7, vector_size=5)
    assert Tagger(TaggerConfig(words=reader)).hidden_size == 400
    with pytest.raises(BertkitError, match="num_layers is 0; it must be from 1 to"):
        TaggerConfig(words=reader, num_layers=0)
