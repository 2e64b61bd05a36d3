from __future__ import annotations

import pytest
import torch
from torch import nn

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.encoders import bert, esim
from bertkit.errors import BertkitError
from bertkit.objectives._vocabulary_head import find_token_embedding
from bertkit.objectives.clm import CausalLanguageModel
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.pretraining.task import PretrainingTask


def test_only_states_at_labelled_positions_are_picked(padded_batch: Batch) -> None:
    labels = torch.full((4, 13), IGNORE)
    labels[0, 5], labels[2, 1] = 7, 37
    head, states = CausalLanguageModel(nn.Embedding(99, 12)), torch.randn(4, 13, 12)
    output = EncoderOutput(hidden_states=states, pooled=states[:, 0])
    batch = padded_batch.with_labels(clm=labels)
    assert torch.equal(head.pick_rows(output, batch)[:2], torch.stack([states[0, 5], states[2, 1]]))
    assert torch.equal(head.pick_rows(output, padded_batch), states.flatten(0, 1))
    reads = head.reads(batch)
    assert reads is not None
    assert reads.nonzero().tolist() == [[0, 5], [2, 1]]
    assert head.reads(padded_batch) is None


def test_the_output_layer_is_the_token_embedding_of_the_encoder() -> None:
    encoder = bert.tiny()
    assert find_token_embedding(encoder, "mlm") is encoder.embeddings.word
    with pytest.raises(BertkitError, match=r"task\.objectives has mlm, .* Esim has no property token_embedding"):
        find_token_embedding(esim.tiny(), "mlm")


def test_a_table_narrower_than_the_states_is_for_masked_words(padded_batch: Batch) -> None:
    """As in ALBERT, whose table of tokens is (V, E) with E < H: the transform of the head is from H to E."""
    encoder = bert.tiny()
    encoder.embeddings.word = nn.Embedding(99, 7)
    states = torch.randn(4, 13, encoder.hidden_size)
    output = EncoderOutput(hidden_states=states, pooled=states[:, 0])
    head = MaskedLanguageModel.build(encoder, PretrainingTask())
    assert head(output, padded_batch)["logits"].shape == (4 * 13, 99)
    labelled = padded_batch.with_labels(mlm=padded_batch.input_ids.masked_fill(~padded_batch.attention_mask, IGNORE))
    assert head.count_macs(labelled) == int(padded_batch.attention_mask.sum()) * 7 * (encoder.hidden_size + 99)
    with pytest.raises(BertkitError, match=r"clm, .* Bert is 7 wide and its states are 12: make them equal"):
        CausalLanguageModel.build(encoder, PretrainingTask())
    encoder.prediction_head = nn.Linear(encoder.hidden_size, encoder.hidden_size)
    with pytest.raises(BertkitError, match=r"mlm, .* Bert is 7 wide and its states are 12: make them equal"):
        MaskedLanguageModel.build(encoder, PretrainingTask())
