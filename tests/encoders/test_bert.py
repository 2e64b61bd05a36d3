from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from bertkit.batch import Batch
from bertkit.encoders.bert import HF_NAMES, SIZES, Bert, BertConfig, size, tiny
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction


@pytest.mark.parametrize(
    ("name", "millions"),
    # google-research/bert README; base and large of the paper, all with the uncased vocabulary.
    [("tiny", 4.4), ("mini", 11.2), ("small", 28.8), ("medium", 41.4), ("base", 109.5), ("large", 335.1)],
)
def test_published_sizes_have_the_published_parameter_counts(name: str, millions: float) -> None:
    with torch.device("meta"):
        encoder = Bert(size(name, vocab_size=30522))
    assert sum(weight.numel() for weight in encoder.parameters()) / 1e6 == pytest.approx(millions, abs=0.06)


def test_bert_base_with_pretraining_heads_has_the_published_parameter_count() -> None:
    with torch.device("meta"):
        encoder = Bert(size("base", vocab_size=30522))
        model = Model(
            encoder, {"mlm": MaskedLanguageModel(encoder.embeddings.word), "nsp": NextSentencePrediction(768)}
        )
    assert sum(weight.numel() for weight in model.parameters()) == 110_106_428


def test_a_size_can_be_given_as_layers_width_and_heads() -> None:
    config = size("3/12/2", vocab_size=99, max_positions=37)
    assert (config.num_layers, config.hidden_size, config.num_heads) == (3, 12, 2)
    assert (config.intermediate_size, config.max_positions) == (48, 37)


@pytest.mark.parametrize("name", ["minni", "3/12", "a/b/c", "", "3/12/2/1"])
def test_unknown_size_lists_the_sizes(name: str) -> None:
    with pytest.raises(BertkitError, match="tiny, mini, small") as caught:
        size(name, vocab_size=99)
    assert caught.value.exit_code == 2
    assert name != "minni" or 'Did you mean "mini"?' in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 13}, "hidden_size 13 is not a multiple of num_heads 2"),
        ({"num_layers": 0}, "num_layers is 0; it must be from 1 to"),
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1"),
        ({"attention_dropout": -0.1}, "attention_dropout is -0.1"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps is 0.0; it must be above 0"),
        ({"initializer_range": -1.0}, "initializer_range is -1.0"),
        ({"activation": "gelu_tan"}, 'Did you mean "gelu_tanh"?'),
        ({"lstm_layers": -1}, "lstm_layers is -1; it must be from 0 to"),
        ({"lstm_layers": 1, "hidden_size": 13, "num_heads": 1}, "lstm_layers needs an even hidden_size; it is 13"),
        ({"pad_id": 99}, "pad_id is 99; the vocabulary has the ids 0 to 98"),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    fields = {"vocab_size": 99, "hidden_size": 12, "num_heads": 2, **changes}
    with pytest.raises(BertkitError) as caught:
        BertConfig(**fields)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_unknown_setting_gets_the_nearest_name() -> None:
    with pytest.raises(BertkitError, match='no setting "drop_out"') as caught:
        size("tiny", vocab_size=99, drop_out=0.2)
    assert 'Did you mean "dropout"?' in str(caught.value)


def test_rows_longer_than_the_positions_are_refused() -> None:
    ids = torch.full((2, 43), 7)
    batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=ids > 0, labels={})
    with pytest.raises(BertkitError, match="rows of 43 tokens, but the model has 41 positions"):
        tiny()(batch)


def test_with_one_segment_both_texts_of_a_pair_have_it(padded_batch: Batch) -> None:
    encoder = Bert(size("1/12/2", vocab_size=99, max_positions=41, num_segments=1)).eval()
    states = encoder(padded_batch).hidden_states
    alone = replace(padded_batch, segment_ids=torch.zeros_like(padded_batch.segment_ids))
    torch.testing.assert_close(states, encoder(alone).hidden_states)


def test_hidden_states_of_all_layers_are_returned_on_request(padded_batch: Batch) -> None:
    encoder = tiny()
    assert encoder(padded_batch).layers == ()
    states = encoder(padded_batch, output_hidden_states=True)
    assert len(states.layers) == encoder.num_layers + 1
    assert states.layers[-1] is states.hidden_states


def test_gradient_checkpointing_stores_less_than_a_seventh_of_the_tensors(padded_batch: Batch) -> None:
    encoder, stored = Bert(size("7/12/2", vocab_size=99, max_positions=13)), [0, 0]

    def count(tensor: Tensor) -> Tensor:
        stored[encoder.gradient_checkpointing] += tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        for encoder.gradient_checkpointing in (False, True):
            encoder(padded_batch)
    assert stored[True] < stored[False] / 7


def test_hugging_face_names_cover_every_weight_once() -> None:
    encoder = tiny()
    ours = [name.format(layer=layer) for name in HF_NAMES for layer in range(encoder.num_layers)]
    assert set(ours) == set(encoder.state_dict())
    hf_names = [name for names in HF_NAMES.values() for name in names]
    assert len(hf_names) == len(set(hf_names))


def test_weights_are_initialised_as_published() -> None:
    encoder = Bert(size("2/256/4", vocab_size=999))
    for name, weight in encoder.named_parameters():
        if name.endswith("bias"):
            assert not weight.any(), name
        elif "norm" in name:
            assert bool((weight == 1).all()), name
        else:
            # A normal distribution truncated at 2 sigma has 0.8796 of its standard deviation.
            assert weight.std().item() == pytest.approx(0.02 * 0.8796, rel=0.05), name
            assert weight.abs().max().item() <= 0.04, name
            assert abs(weight.mean().item()) < 0.001, name


def test_all_named_sizes_have_heads_of_64() -> None:
    assert {hidden // heads for _, hidden, heads in SIZES.values()} == {64}


def test_every_parameter_belongs_to_a_layer() -> None:
    encoder = tiny()
    depths = {name: encoder.depth(name) for name, _ in encoder.named_parameters()}
    assert depths["embeddings.word.weight"] == depths["embeddings.norm.bias"] == 0
    assert depths["layers.0.attention.qkv.weight"] == 1
    assert depths["layers.2.feed_forward_norm.bias"] == 3
    assert depths["pooler.dense.weight"] == 4
    assert set(depths.values()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_the_last_blocks_and_the_pooler_are_reinitialised(blocks: int) -> None:
    encoder = tiny()
    torch.nn.init.constant_(encoder.get_parameter("layers.2.attention.qkv.bias"), 0.5)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.reinitialize_top(blocks)
    for name, value in encoder.state_dict().items():
        reinitialised = encoder.depth(name) > 3 - blocks
        if value.ndim > 1:
            assert torch.equal(value, before[name]) is not reinitialised, name
        elif reinitialised:
            assert torch.equal(value, torch.full_like(value, "norm" in name and name.endswith("weight"))), name


def test_no_state_of_a_causal_encoder_depends_on_a_later_token(padded_batch: Batch) -> None:
    encoder, seen = Bert(replace(tiny().config, causal=True)).eval(), list[Tensor]()
    encoder.embeddings.register_forward_hook(lambda module, inputs, states: seen.append(states))
    states = encoder(padded_batch)
    for row, reader in padded_batch.attention_mask.nonzero().tolist():
        (gradient,) = torch.autograd.grad(states.hidden_states[row, reader].sin().sum(), seen, retain_graph=True)
        depends = gradient.abs().sum(dim=-1) > 0
        assert depends[row, : reader + 1].all()
        assert int(depends.sum()) == reader + 1
    for row, length in enumerate(padded_batch.attention_mask.sum(dim=1).tolist()):
        (gradient,) = torch.autograd.grad(states.pooled[row].sum(), seen, retain_graph=True)
        assert (gradient[row, :length].abs().sum(dim=-1) > 0).all(), "the pooled state depends on the whole row"


@pytest.mark.parametrize("causal", [False, True])
def test_the_lstm_on_top_equals_that_of_pytorch(causal: bool, padded_batch: Batch) -> None:
    config = replace(tiny().config, causal=causal)
    plain, topped = Bert(config).eval(), Bert(replace(config, lstm_layers=2)).eval()
    topped.load_state_dict(plain.state_dict(), strict=False)
    official = torch.nn.LSTM(12, 6, num_layers=2, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, weight in official.named_parameters():  # such as weight_ih_l1_reverse
            layer = int("_l1" in name)
            topped.get_parameter(f"lstm.layers.{layer}.{name.replace('_l1', '_l0')}").copy_(weight)
    states, below = topped(padded_batch), plain(padded_batch)
    for row, length in enumerate(padded_batch.attention_mask.sum(dim=1).tolist()):
        expected, (last, _) = official(below.hidden_states[row : row + 1, :length])
        torch.testing.assert_close(states.hidden_states[row, :length], expected[0], rtol=0, atol=1e-6)
        ends = last[-2:].flatten()  # of the upper layer: forward after the last token, backward after the first
        torch.testing.assert_close(states.pooled[row], topped.pooler(ends[None])[0], rtol=0, atol=1e-6)
