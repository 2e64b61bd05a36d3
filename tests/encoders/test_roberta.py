from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bertkit.batch import Batch
from bertkit.encoders.roberta import HF_NAMES, Roberta, RobertaConfig, size, tiny
from bertkit.errors import BertkitError


@pytest.mark.parametrize(("name", "parameters"), [("base", 124_645_632), ("large", 355_359_744)])
def test_the_published_sizes_have_the_published_counts(name: str, parameters: int) -> None:
    """The counts are those of transformers' RobertaModel with its pooler."""
    with torch.device("meta"):
        encoder = Roberta(size(name, vocab_size=50_265))
    assert sum(weight.numel() for weight in encoder.parameters()) == parameters
    assert (encoder.config.max_positions, encoder.config.layer_norm_eps) == (512, 1e-5)


def test_positions_begin_after_the_padding_id(padded_batch: Batch) -> None:
    """The padding id of the tiny network is 3: its tokens use the rows from 4 on, and no others."""
    encoder = tiny()
    states = encoder(padded_batch)
    states.hidden_states[padded_batch.attention_mask].sin().sum().backward()
    rows = encoder.embeddings.position.weight.grad
    assert rows is not None
    assert rows.abs().sum(dim=1).nonzero().flatten().tolist() == list(range(4, 4 + 13))


def test_segments_are_ignored(padded_batch: Batch) -> None:
    encoder = tiny().eval()
    other = replace(padded_batch, segment_ids=1 - padded_batch.segment_ids)
    assert torch.equal(encoder(padded_batch).hidden_states, encoder(other).hidden_states)


def test_rows_longer_than_the_positions_are_refused() -> None:
    encoder = tiny()
    assert encoder.config.max_positions == 37
    for tokens in (37, 38):
        ids = torch.full((2, tokens), 7)
        batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=ids > 0, labels={})
        if tokens == 37:
            assert encoder(batch).hidden_states.shape == (2, 37, 12)
            continue
        with pytest.raises(BertkitError, match="rows of 38 tokens, but the model has 37 positions"):
            encoder(batch)


def test_sizes_and_settings_are_checked() -> None:
    config = size("3/12/2", vocab_size=99)
    assert (config.num_layers, config.hidden_size, config.num_heads, config.intermediate_size) == (3, 12, 2, 48)
    with pytest.raises(BertkitError, match="There are: tiny, mini, small, medium, base, large, or layers/width/heads"):
        size("huge", vocab_size=99)
    with pytest.raises(BertkitError, match=r'RoBERTa has no setting "num_head".* Did you mean "num_heads"\?'):
        size("base", vocab_size=99, num_head=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 13}, "hidden_size 13 is not a multiple of num_heads 2"),
        ({"num_positions": 2}, "num_positions is 2; it must be 3 or more: positions begin at pad_id + 1"),
        ({"pad_id": 99}, "pad_id is 99; the vocabulary has the ids 0 to 98"),
        ({"num_segments": 0}, "num_segments is 0; it must be from 1 to"),
        ({"activation": "gleu"}, 'activation "gleu" is unknown'),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    fields = {"vocab_size": 99, "hidden_size": 12, "num_heads": 2, **changes}
    with pytest.raises(BertkitError) as caught:
        RobertaConfig(**fields)
    assert message in str(caught.value)


def test_hugging_face_names_cover_every_weight_once() -> None:
    encoder = tiny()
    ours = [name.format(layer=layer) for name in HF_NAMES for layer in range(encoder.num_layers)]
    assert set(ours) == set(encoder.state_dict())
