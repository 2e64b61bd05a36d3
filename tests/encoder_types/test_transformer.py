from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
import torch

from bertkit.batch import Batch
from bertkit.encoder_types.transformer import ACTIVATION_NAMES, NAMES, SETTINGS
from bertkit.encoders import bert, gpt, roberta
from bertkit.errors import BertkitError
from bertkit.nn.activation import ACTIVATIONS


def test_depth_counts_embeddings_blocks_and_what_is_above_them() -> None:
    encoder = bert.tiny()
    assert encoder.depth("embeddings.word.weight") == 0
    assert encoder.depth("layers.0.attention.qkv.weight") == 1
    assert encoder.depth("layers.2.feed_forward.inner.bias") == encoder.num_layers == 3
    assert encoder.depth("pooler.dense.weight") == 4


def test_an_lstm_on_causal_blocks_makes_states_bidirectional(padded_batch: Batch) -> None:
    config = replace(bert.tiny().config, causal=True)
    assert bert.Bert(config).causal
    encoder = bert.Bert(replace(config, lstm_layers=2)).eval()
    assert not encoder.causal
    changed = padded_batch.input_ids.clone()
    changed[0, 12] = 7
    before, after = (
        encoder(replace(padded_batch, input_ids=ids)).hidden_states[0, 0] for ids in (padded_batch.input_ids, changed)
    )
    assert not torch.equal(before, after)


def test_the_pooled_state_of_causal_blocks_is_that_of_the_last_token(padded_batch: Batch) -> None:
    encoder = bert.Bert(replace(bert.tiny().config, causal=True)).eval()
    states = encoder(padded_batch)
    last = states.hidden_states[torch.arange(4), padded_batch.attention_mask.sum(dim=1) - 1]
    assert torch.equal(states.pooled, encoder.pooler(last))


def test_the_macs_of_one_row_are_those_of_the_formula() -> None:
    encoder = bert.tiny()
    tokens, hidden, inner, layers = 7, 12, 37, 3
    ids = torch.randint(5, 99, (1, tokens))
    batch = Batch(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool), {})
    per_block = tokens * (4 * hidden**2 + 2 * hidden * inner + 2 * tokens * hidden)
    assert encoder.count_macs(batch, batch.attention_mask, pooled=False) == layers * per_block
    assert encoder.count_macs(batch, batch.attention_mask, pooled=True) == layers * per_block + hidden**2


@pytest.mark.parametrize("causal", [False, True])
def test_the_macs_of_an_lstm_are_not_counted(padded_batch: Batch, causal: bool) -> None:
    encoder = bert.Bert(replace(bert.tiny().config, causal=causal, lstm_layers=2))
    for pooled in (False, True):
        assert encoder.count_macs(padded_batch, padded_batch.attention_mask, pooled=pooled) is None


def test_tables_of_names_fit_the_configurations_and_parameters() -> None:
    for module in (bert, roberta):
        encoder = module.tiny()
        written = {name.format(layer=layer) for name in NAMES for layer in range(encoder.num_layers)}
        assert written == {name for name, _ in encoder.named_parameters()}
        assert all(hasattr(encoder.config, field) for field in SETTINGS)
    assert set(ACTIVATION_NAMES.values()) <= set(ACTIVATIONS)


@pytest.mark.parametrize("module", [bert, roberta])
def test_neighbour_heads_start_with_blocks_that_change_nothing(module: ModuleType, padded_batch: Batch) -> None:
    config = module.size("3/16/2", vocab_size=99, position_init="neighbour_heads", layer_norm_eps=1e-12)
    encoder = module.SPEC.encoder(config).eval()
    layers = encoder(padded_batch, output_hidden_states=True).layers
    for states in layers[1:]:
        torch.testing.assert_close(states, layers[0], atol=1e-5, rtol=1e-5)
    assert not encoder.embeddings.word.weight[:, -8:].any()
    assert encoder.embeddings.position.weight[:, -8:].any()


@pytest.mark.parametrize(
    ("module", "shape", "message"),
    [(gpt, "3/16/2", "both directions"), (bert, "3/16/1", "two heads or more"), (bert, "3/15/5", "of an even width")],
)
def test_neighbour_heads_that_do_not_fit_are_refused(module: ModuleType, shape: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        module.size(shape, vocab_size=99, position_init="neighbour_heads")
