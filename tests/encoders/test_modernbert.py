from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.modernbert import HF_NAMES, ModernBert, ModernBertConfig, read_layer_types, size, tiny
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.nn.packing import PackedRows
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.token_classification import TokenClassification
from bertkit.pretraining.task import PretrainingTask
from bertkit.text.wordpiece import WordPiece, train


@pytest.fixture
def tokenizer() -> WordPiece:
    return train(["a fox and an ox", "the ox's den, and the fox"] * 2, vocab_size=43)


def rows(*lengths: int) -> Batch:
    real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = torch.randint(5, 43, real.shape)
    return Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=real, labels={})


@pytest.mark.parametrize(("name", "parameters"), [("base", 149_604_864), ("large", 395_831_296)])
def test_the_published_sizes_have_the_published_counts(name: str, parameters: int) -> None:
    """The counts are those of transformers' ModernBertForMaskedLM without its 50,368 biases."""
    with torch.device("meta"):
        encoder = ModernBert(size(name, vocab_size=50_368))
    assert sum(weight.numel() for weight in encoder.parameters()) == parameters


def test_every_third_layer_is_global() -> None:
    config = size("7/32/2", vocab_size=99)
    assert [config.window(layer) for layer in range(7)] == [None, 64, 64, None, 64, 64, None]
    assert [config.theta(layer) for layer in range(3)] == [160_000.0, 10_000.0, 10_000.0]


def test_a_token_affects_only_its_window_in_a_local_layer() -> None:
    encoder = ModernBert(size("2/12/2", vocab_size=99, global_every=2, local_attention=6)).eval()
    batch = rows(19)
    changed = batch.input_ids.clone()
    changed[0, 9] = 50
    before, after = (
        encoder.layers[1](encoder.embeddings(ids)[0], PackedRows.of(batch.attention_mask))
        for ids in (batch.input_ids, changed)
    )
    assert (before != after).any(dim=1).nonzero().flatten().tolist() == list(range(6, 13))


def test_segments_are_ignored(padded_batch: Batch) -> None:
    encoder = tiny().eval()
    other = replace(padded_batch, segment_ids=1 - padded_batch.segment_ids)
    assert torch.equal(encoder(padded_batch).hidden_states, encoder(other).hidden_states)


def test_the_pooled_state_is_the_mean_where_the_configuration_says_so(padded_batch: Batch) -> None:
    encoder = ModernBert(replace(tiny().config, pooling="mean")).eval()
    states = encoder(padded_batch, torch.zeros_like(padded_batch.attention_mask))
    mean = states.hidden_states[1, :7].mean(dim=0)
    torch.testing.assert_close(states.pooled[1], encoder.prediction_head(mean), rtol=0, atol=1e-5)


def test_rows_longer_than_the_positions_are_refused() -> None:
    with pytest.raises(BertkitError, match="rows of 42 tokens, but the model has 41 positions"):
        tiny()(rows(42))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 13}, "hidden_size 13 is not a multiple of num_heads 2"),
        ({"hidden_size": 14}, "hidden_size 14 in 2 heads gives each an odd width"),
        ({"local_attention": 1}, "local_attention is 1; it must be from 2 to"),
        ({"global_every": 0}, "global_every is 0; it must be from 1 to"),
        ({"global_theta": 1.0}, "global_theta is 1.0; it must be above 1"),
        ({"pad_id": 99}, "pad_id is 99; the vocabulary has the ids 0 to 98"),
        ({"position_init": "neighbour_heads"}, "even width of at least 16 with rotary positions; hidden_size is 12"),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        ModernBertConfig(**{"vocab_size": 99, "hidden_size": 12, "num_heads": 2, **changes})
    assert message in str(caught.value)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(BertkitError, match=r'ModernBERT has no setting "num_head".* Did you mean "num_heads"\?'):
        size("base", vocab_size=99, num_head=3)


def test_hugging_face_names_cover_every_weight_once() -> None:
    encoder = tiny()
    ours = {name.format(layer=layer) for name in HF_NAMES for layer in range(encoder.num_layers)}
    assert ours - set(encoder.state_dict()) == {"layers.0.attention_norm.weight"}
    assert set(encoder.state_dict()) < ours


def test_the_count_of_operations_equals_torchs() -> None:
    """Without dropout or padding, in rows that every window covers."""
    encoder = ModernBert(size("3/12/2", vocab_size=99, global_every=2, local_attention=20)).eval()
    batch = rows(9, 9)
    with FlopCounterMode(display=False) as counted:
        encoder(batch)
    macs = encoder.count_macs(batch, batch.attention_mask, pooled=True)
    assert 2 * macs == counted.get_total_flops()
    assert macs - encoder.count_macs(batch, batch.attention_mask, pooled=False) == 2 * 12**2


def test_a_window_is_counted_by_the_tokens_in_it() -> None:
    config = size("1/12/2", vocab_size=99, local_attention=4)
    local = replace(config, num_layers=2, global_every=2)
    batch = rows(7, 3)
    counts = [
        ModernBert(each).count_macs(batch, batch.attention_mask, pooled=False)
        for each in (replace(local, global_every=1), local)
    ]
    # Of 7 tokens with two on each side: 3 + 4 + 5 + 5 + 5 + 4 + 3 pairs instead of 49; of 3 tokens all 9.
    assert counts[0] - counts[1] == 2 * 12 * (49 - 29)


def test_blocks_start_as_the_identity_with_neighbour_heads(padded_batch: Batch) -> None:
    config = size("3/32/2", vocab_size=99, position_init="neighbour_heads", initializer_range=0.05)
    encoder = ModernBert(config).eval()
    layers = encoder(padded_batch, output_hidden_states=True).layers
    for states in layers[1:-1]:
        assert torch.equal(states, layers[0])
    assert (encoder.embeddings.word.weight[:, -1] == 0.2).all()


def ask_words(encoder: Any) -> Any:
    return {"mlm": MaskedLanguageModel.build(encoder, PretrainingTask())}


def test_a_saved_model_is_loaded_bit_for_bit(tmp_path: Path, tokenizer: WordPiece) -> None:
    encoder = ModernBert(replace(tiny().config, vocab_size=tokenizer.vocab_size, pooling="mean"))
    model = Model(encoder, ask_words(encoder))
    save_model(tmp_path / "model", model, tokenizer, metadata={})
    folder = ModelFolder.open(tmp_path / "model")
    again = folder.load_model(ask_words)
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert folder.config == encoder.config
    assert folder.tokenizer.fingerprint == tokenizer.fingerprint
    assert set(model.objectives["mlm"].state_dict()) == {"bias"}


def test_heads_of_tokens_read_the_states_after_the_prediction_head(padded_batch: Batch) -> None:
    encoder = tiny().eval()
    head = TokenClassification(12, 5).eval()
    states = encoder(padded_batch)
    expected = head.classifier(encoder.prediction_head(states.hidden_states))
    assert torch.equal(head(states, padded_batch)["logits"], expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"]}, "irregular"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "irregular"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
            'rope_type is "yarn"; bertkit reads "default"',
        ),
    ],
)
def test_patterns_that_cannot_be_expressed_are_errors(content: dict[str, object], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        read_layer_types(content, "config.json")


@pytest.mark.parametrize("key", ["norm_bias", "attention_bias", "mlp_bias", "classifier_bias"])
def test_biases_are_refused(tmp_path: Path, tokenizer: WordPiece, key: str) -> None:
    encoder = ModernBert(replace(tiny().config, vocab_size=tokenizer.vocab_size))
    save_model(tmp_path, Model(encoder, {}), tokenizer, metadata={})
    (tmp_path / "bertkit.json").unlink()
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace("{", f'{{"{key}": true,', 1))
    with pytest.raises(BertkitError, match=f'{key} is "True"; bertkit reads "False"'):
        ModelFolder.open(tmp_path).load_encoder()


def test_a_folder_without_heads_gets_a_new_prediction_head(tmp_path: Path, tokenizer: WordPiece) -> None:
    encoder = ModernBert(replace(tiny().config, vocab_size=tokenizer.vocab_size))
    save_model(tmp_path, Model(encoder, {}), tokenizer, metadata={})
    again = ModelFolder.open(tmp_path).load_encoder()
    assert isinstance(again, ModernBert)
    assert torch.equal(again.final_norm.weight, encoder.final_norm.weight)
    assert 0 < again.prediction_head.dense.weight.std() < 0.1
    assert (again.prediction_head.norm.weight == 1).all()
