"""BERT's layers equal those of Hugging Face transformers with the same weights: to 1e-5, and 1e-4 for the network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.parity.agreement import COMPOSITE, SIMPLE, close
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch
from bertkit.encoders.bert import HF_NAMES, SPEC, Bert, BertConfig
from bertkit.model import Model
from bertkit.nn.block import PostNormBlock
from bertkit.nn.packing import PackedRows
from bertkit.objectives import mlm, nsp
from bertkit.objectives import regression as regress
from bertkit.objectives import sequence_classification as classify
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers
    from transformers.models.bert import modeling_bert as hf


CONFIG = BertConfig(
    vocab_size=99, hidden_size=28, num_layers=3, num_heads=4, intermediate_size=37, max_positions=41, num_segments=3
)
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}


def build_hf(kind: Callable[[Any], Any], activation: str = "gelu", **changes: Any) -> Any:
    """A small model of transformers with weights that are neither constant nor near zero."""
    config = transformers.BertConfig(
        vocab_size=CONFIG.vocab_size,
        hidden_size=CONFIG.hidden_size,
        num_hidden_layers=CONFIG.num_layers,
        num_attention_heads=CONFIG.num_heads,
        intermediate_size=CONFIG.intermediate_size,
        max_position_embeddings=CONFIG.max_positions,
        type_vocab_size=CONFIG.num_segments,
        hidden_act=ACTIVATIONS[activation],
        **changes,
    )
    model = kind(config).eval()
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "LayerNorm.weight" in name else 0.0, std=0.2)
    return model


def translate(
    table: Mapping[str, tuple[str, ...]], weights: Mapping[str, Tensor], prefix: str = ""
) -> dict[str, Tensor]:
    """The weights of a model of transformers under our names."""
    translated = {}
    for our_name, hf_names in table.items():
        for layer in range(CONFIG.num_layers if "{layer}" in our_name else 1):
            parts = [weights[prefix + name.format(layer=layer)] for name in hf_names]
            translated[our_name.format(layer=layer)] = torch.cat(parts) if len(parts) > 1 else parts[0]
    return translated


def build_ours(hf_model: Any, prefix: str = "", activation: str = "gelu") -> Bert:
    changed = BertConfig(**{**vars(CONFIG), "activation": activation})
    encoder = Bert(changed)
    encoder.load_state_dict(translate(HF_NAMES, hf_model.state_dict(), prefix))
    return encoder.eval()


def hf_inputs(batch: Batch) -> dict[str, Tensor]:
    return {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.attention_mask.long(),
    }


@pytest.fixture(scope="module")
def pair() -> tuple[Bert, Any]:
    torch.manual_seed(13)
    hf_model = build_hf(hf.BertModel)
    return build_ours(hf_model), hf_model


@pytest.fixture
def states() -> Tensor:
    return torch.randn(4, 13, CONFIG.hidden_size)


def block(encoder: Bert, layer: int) -> PostNormBlock:
    found = encoder.layers[layer]
    assert isinstance(found, PostNormBlock)
    return found


def hf_mask(batch: Batch) -> Tensor:
    return batch.attention_mask[:, None, None, :].expand(-1, 1, 13, -1)


def test_embeddings(pair: tuple[Bert, Any], padded_batch: Batch) -> None:
    ours, hf_model = pair
    expected = hf_model.embeddings(input_ids=padded_batch.input_ids, token_type_ids=padded_batch.segment_ids)
    close(ours.embeddings(padded_batch.input_ids, padded_batch.segment_ids), expected, SIMPLE)


@pytest.mark.parametrize("padded", [False, True])
def test_attention(pair: tuple[Bert, Any], states: Tensor, padded_batch: Batch, padded: bool) -> None:
    ours, hf_model = pair
    layer, hf_brick = block(ours, 1), hf_model.encoder.layer[1].attention
    expected = hf_brick.self(states, attention_mask=hf_mask(padded_batch) if padded else None)[0]
    real = padded_batch.attention_mask if padded else torch.ones_like(padded_batch.attention_mask)
    layout = PackedRows.of(real)
    update = layer.attention(layout.unpad(states), layout)
    close(update, hf_brick.output.dense(expected)[real], SIMPLE)
    close(layer.attention_norm(states[real], update), hf_brick.output(expected, states)[real], SIMPLE)


def test_feed_forward(pair: tuple[Bert, Any], states: Tensor) -> None:
    ours, hf_model = pair
    layer, hf_layer = block(ours, 2), hf_model.encoder.layer[2]
    inner = hf_layer.intermediate(states)
    close(layer.feed_forward(states), hf_layer.output.dense(inner), SIMPLE)
    close(layer.feed_forward_norm(states, layer.feed_forward(states)), hf_layer.output(inner, states), SIMPLE)


def test_layer(pair: tuple[Bert, Any], states: Tensor, padded_batch: Batch) -> None:
    ours, hf_model = pair
    expected = hf_model.encoder.layer[0](states, attention_mask=hf_mask(padded_batch))
    expected = expected[0] if isinstance(expected, tuple) else expected
    real = padded_batch.attention_mask
    close(ours.layers[0](states[real], PackedRows.of(real)), expected[real], COMPOSITE)


def test_pooler(pair: tuple[Bert, Any], states: Tensor) -> None:
    ours, hf_model = pair
    close(ours.pooler(states[:, 0]), hf_model.pooler(states), SIMPLE)


def test_causal_attention_equals_a_decoder_of_transformers(padded_batch: Batch) -> None:
    hf_model = build_hf(hf.BertModel, is_decoder=True)
    ours = Bert(replace(CONFIG, causal=True)).eval()
    ours.load_state_dict(translate(HF_NAMES, hf_model.state_dict()))
    expected = hf_model(**hf_inputs(padded_batch)).last_hidden_state
    states, real = ours(padded_batch), padded_batch.attention_mask
    close(states.hidden_states[real], expected[real], COMPOSITE)
    last = expected[torch.arange(4), real.sum(dim=1) - 1]
    close(states.pooled, torch.tanh(hf_model.pooler.dense(last)), COMPOSITE)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_encoder_layer_by_layer(padded_batch: Batch, activation: str) -> None:
    hf_model = build_hf(hf.BertModel, activation)
    ours = build_ours(hf_model, activation=activation)
    expected = hf_model(**hf_inputs(padded_batch), output_hidden_states=True)
    output = ours(padded_batch, output_hidden_states=True)
    real = padded_batch.attention_mask
    for our_states, hf_states in zip(output.layers, expected.hidden_states, strict=True):
        close(our_states[real], hf_states[real], COMPOSITE)
    close(output.pooled, expected.pooler_output, COMPOSITE)


def test_pretraining_heads_and_loss(padded_batch: Batch) -> None:
    hf_model = build_hf(hf.BertForPreTraining)
    encoder = build_ours(hf_model, SPEC.huggingface.prefix)
    weights = hf_model.state_dict()
    heads = {"mlm": MaskedLanguageModel(encoder.embeddings.word), "nsp": NextSentencePrediction(CONFIG.hidden_size)}
    heads["mlm"].load_state_dict(translate(mlm.MaskedLanguageModel.HF_NAMES, weights))
    heads["nsp"].load_state_dict(translate(nsp.NextSentencePrediction.HF_NAMES, weights))
    model = Model(encoder, heads).eval()
    _, batch = mlm.tiny(CONFIG.hidden_size, padded_batch)
    batch = batch.with_labels(nsp=torch.tensor([0, 1, 1, 0]))
    expected = hf_model(**hf_inputs(batch), labels=batch.labels["mlm"], next_sentence_label=batch.labels["nsp"])
    outputs = model(batch)
    close(outputs["mlm"]["logits"], expected.prediction_logits[batch.labels["mlm"] != IGNORE], COMPOSITE)
    close(outputs["nsp"]["logits"], expected.seq_relationship_logits, COMPOSITE)
    terms = model.loss(outputs, batch)
    close(torch.stack([term.sum / term.count for term in terms.values()]).sum(), expected.loss, COMPOSITE)


def test_pretraining_gradients(padded_batch: Batch) -> None:
    hf_model = build_hf(hf.BertForPreTraining)
    encoder = build_ours(hf_model, SPEC.huggingface.prefix)
    head = MaskedLanguageModel(encoder.embeddings.word)
    head.load_state_dict(translate(mlm.MaskedLanguageModel.HF_NAMES, hf_model.state_dict()))
    model = Model(encoder, {"mlm": head}).eval()
    _, batch = mlm.tiny(CONFIG.hidden_size, padded_batch)
    term = model.loss(model(batch), batch)["mlm"]
    (term.sum / term.count).backward()  # type: ignore[no-untyped-call]
    scores = hf_model(**hf_inputs(batch)).prediction_logits
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch.labels["mlm"].flatten(), ignore_index=IGNORE)
    loss.backward()  # type: ignore[no-untyped-call]
    hf_gradients = {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad
        for name, weight in hf_model.named_parameters()
    }
    expected = translate(HF_NAMES, hf_gradients, SPEC.huggingface.prefix)
    for name, weight in encoder.named_parameters():
        if weight.grad is not None:
            close(weight.grad, expected[name], COMPOSITE)
    for name, gradient in translate(mlm.MaskedLanguageModel.HF_NAMES, hf_gradients).items():
        close(dict(head.named_parameters())[name].grad, gradient, COMPOSITE)  # type: ignore[arg-type]


def test_classification_and_regression(padded_batch: Batch) -> None:
    for classes in (5, 1):
        hf_model = build_hf(hf.BertForSequenceClassification, num_labels=classes)
        encoder = build_ours(hf_model, SPEC.huggingface.prefix)
        head = Regression(CONFIG.hidden_size) if classes == 1 else SequenceClassification(CONFIG.hidden_size, classes)
        table = regress.Regression.HF_NAMES if classes == 1 else classify.SequenceClassification.HF_NAMES
        head.load_state_dict(translate(table, hf_model.state_dict()))
        outputs = Model(encoder, {"head": head}).eval()(padded_batch)["head"]
        answer = outputs["value"][:, None] if classes == 1 else outputs["logits"]
        close(answer, hf_model(**hf_inputs(padded_batch)).logits, COMPOSITE)


def test_the_name_tables_have_every_weight_of_transformers() -> None:
    weights = set(build_hf(hf.BertForPreTraining).state_dict())
    known = {
        SPEC.huggingface.prefix + name.format(layer=layer)
        for names in HF_NAMES.values()
        for name in names
        for layer in range(CONFIG.num_layers)
    }
    for table in (mlm.MaskedLanguageModel.HF_NAMES, nsp.NextSentencePrediction.HF_NAMES):
        known |= {name for names in table.values() for name in names}
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "bert.embeddings.position_ids"}
    assert weights - known <= tied
    assert known <= weights


def test_real_weights(minilm: Any) -> None:
    """Six layers of a published model, on one full and one padded row."""
    hf_model = transformers.BertModel.from_pretrained(minilm).eval()
    config = hf_model.config
    encoder = Bert(
        BertConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            num_layers=config.num_hidden_layers,
            num_heads=config.num_attention_heads,
            intermediate_size=config.intermediate_size,
        )
    ).eval()
    weights = hf_model.state_dict()
    translated = {
        our_name.format(layer=layer): torch.cat([weights[name.format(layer=layer)] for name in names])
        for our_name, names in HF_NAMES.items()
        for layer in range(encoder.num_layers)
    }
    encoder.load_state_dict(translated)
    ids = torch.randint(1000, 20000, (2, 37))
    real = torch.arange(37) < torch.tensor([37, 21])[:, None]
    batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=real, labels={})
    with torch.no_grad():
        expected, output = hf_model(**hf_inputs(batch)), encoder(batch)
    close(output.hidden_states[real], expected.last_hidden_state[real], COMPOSITE)
    close(output.pooled, expected.pooler_output, COMPOSITE)
