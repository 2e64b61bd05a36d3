"""GPT's layers equal those of Hugging Face transformers with the same weights: to 1e-5, and 1e-4 for the network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.parity.agreement import COMPOSITE, SIMPLE, close
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.gpt import HF_NAMES, SPEC, Gpt, GptConfig
from bertkit.finetuning.starting_point import add_language_model
from bertkit.model import Model
from bertkit.nn.block import PostNormBlock
from bertkit.nn.packing import PackedRows
from bertkit.objectives.clm import CausalLanguageModel, label_next
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.text.bpe import train
from bertkit.training.fit import accumulate_gradients

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers
    from transformers.models.openai import modeling_openai as hf


CONFIG = GptConfig(vocab_size=99, hidden_size=28, num_layers=3, num_heads=4, max_positions=41)


def build_hf(kind: Callable[[Any], Any]) -> Any:
    """A small model of transformers with weights that are neither constant nor near zero."""
    config = transformers.OpenAIGPTConfig(
        vocab_size=CONFIG.vocab_size,
        n_embd=CONFIG.hidden_size,
        n_layer=CONFIG.num_layers,
        n_head=CONFIG.num_heads,
        n_positions=CONFIG.max_positions,
    )
    model = kind(config).eval()
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "ln_" in name and "weight" in name else 0.0, std=0.2)
    return model


def translate(weights: Mapping[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """The weights of a model of transformers under our names."""
    translated = {}
    for ours, (name,) in HF_NAMES.items():
        for layer in range(CONFIG.num_layers):
            weight = weights[prefix + name.removesuffix(".T").format(layer=layer)]
            translated[ours.format(layer=layer)] = weight.T if name.endswith(".T") else weight
    return translated


def build_ours(hf_model: Any, prefix: str = "") -> Gpt:
    encoder = Gpt(CONFIG)
    encoder.load_state_dict(translate(hf_model.state_dict(), prefix))
    return encoder.eval()


@pytest.fixture(scope="module")
def pair() -> tuple[Gpt, Any]:
    torch.manual_seed(13)
    hf_model = build_hf(hf.OpenAIGPTModel)
    return build_ours(hf_model), hf_model


@pytest.fixture
def states() -> Tensor:
    return torch.randn(4, 13, CONFIG.hidden_size)


def block(encoder: Gpt, layer: int) -> PostNormBlock:
    found = encoder.layers[layer]
    assert isinstance(found, PostNormBlock)
    return found


def test_embeddings(pair: tuple[Gpt, Any], padded_batch: Batch) -> None:
    ours, hf_model = pair
    positions = torch.arange(13)
    expected = hf_model.tokens_embed(padded_batch.input_ids) + hf_model.positions_embed(positions)
    close(ours.embeddings(padded_batch.input_ids), expected, SIMPLE)


def test_attention(pair: tuple[Gpt, Any], states: Tensor) -> None:
    ours, hf_model = pair
    layout = PackedRows(4, 13)
    update = block(ours, 1).attention(layout.unpad(states), layout)
    close(layout.pad(update), hf_model.h[1].attn(states)[0], SIMPLE)


def test_feed_forward_and_norm(pair: tuple[Gpt, Any], states: Tensor) -> None:
    ours, hf_model = pair
    layer, hf_layer = block(ours, 2), hf_model.h[2]
    update = layer.feed_forward(states)
    close(update, hf_layer.mlp(states), SIMPLE)
    close(layer.feed_forward_norm(states, update), hf_layer.ln_2(states + update), SIMPLE)


def test_layer(pair: tuple[Gpt, Any], states: Tensor) -> None:
    ours, hf_model = pair
    layout = PackedRows(4, 13)
    raised = layout.pad(ours.layers[0](layout.unpad(states), layout))
    close(raised, hf_model.h[0](states)[0], COMPOSITE)


def test_encoder_layer_by_layer(pair: tuple[Gpt, Any], padded_batch: Batch) -> None:
    ours, hf_model = pair
    real = padded_batch.attention_mask
    inputs = {"input_ids": padded_batch.input_ids, "attention_mask": real.long()}
    expected = hf_model(**inputs, output_hidden_states=True).hidden_states
    output = ours(padded_batch, output_hidden_states=True)
    for our_states, hf_states in zip(output.layers, expected, strict=True):
        close(our_states[real], hf_states[real], COMPOSITE)
    last = real.sum(dim=1) - 1
    close(output.pooled, expected[-1][torch.arange(4), last], COMPOSITE)


def test_language_model_loss_and_gradients(padded_batch: Batch) -> None:
    hf_model = build_hf(hf.OpenAIGPTLMHeadModel)
    encoder = build_ours(hf_model, SPEC.huggingface.prefix)
    model = Model(encoder, {"clm": CausalLanguageModel(encoder.embeddings.word)}).eval()
    batch = label_next(padded_batch)
    real = batch.attention_mask
    expected = hf_model(batch.input_ids, attention_mask=real.long(), labels=batch.input_ids.masked_fill(~real, IGNORE))
    outputs = model(batch)
    labelled = batch.labels["clm"] != IGNORE
    close(outputs["clm"]["logits"][: int(labelled.sum())], expected.logits[labelled], COMPOSITE)
    term = model.loss(outputs, batch)["clm"]
    close(term.sum / term.count, expected.loss, COMPOSITE)
    (term.sum / term.count).backward()  # type: ignore[no-untyped-call]
    expected.loss.backward()
    hf_gradients = {name: weight.grad for name, weight in hf_model.named_parameters()}
    expected_gradients = translate(hf_gradients, SPEC.huggingface.prefix)
    for name, weight in encoder.named_parameters():
        assert weight.grad is not None
        close(weight.grad, expected_gradients[name], COMPOSITE)


def test_the_name_table_has_every_weight_of_transformers() -> None:
    known = {
        SPEC.huggingface.prefix + name.removesuffix(".T").format(layer=layer)
        for (name,) in HF_NAMES.values()
        for layer in range(CONFIG.num_layers)
    }
    assert set(build_hf(hf.OpenAIGPTLMHeadModel).state_dict()) - known <= {"lm_head.weight"}
    assert len(known) == 2 + 12 * CONFIG.num_layers


def hf_states(model: Any, batch: Batch) -> Tensor:
    states = model(batch.input_ids, attention_mask=batch.attention_mask.long()).last_hidden_state
    return states[batch.attention_mask]  # type: ignore[no-any-return]


def test_a_folder_of_transformers_loads(tmp_path: Path, padded_batch: Batch) -> None:
    hf_model = build_hf(hf.OpenAIGPTLMHeadModel)
    hf_model.save_pretrained(tmp_path)
    with torch.no_grad():
        states = ModelFolder.open(tmp_path).load_encoder().eval()(padded_batch).hidden_states
        close(states[padded_batch.attention_mask], hf_states(hf_model.transformer, padded_batch), COMPOSITE)


def test_transformers_loads_our_folder(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = Gpt(CONFIG).eval()
    tokenizer = train(["the fox and the ox"] * 2, vocab_size=67)
    save_model(tmp_path, Model(encoder, {"clm": CausalLanguageModel(encoder.embeddings.word)}), tokenizer, metadata={})
    hf_model, report = transformers.OpenAIGPTLMHeadModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert transformers.AutoConfig.from_pretrained(tmp_path).layer_norm_epsilon == CONFIG.layer_norm_eps
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)("the ox").input_ids == tokenizer.encode("the ox").ids
    with torch.no_grad():
        states = encoder(padded_batch).hidden_states[padded_batch.attention_mask]
        close(states, hf_states(hf_model.eval().transformer, padded_batch), COMPOSITE)


def test_multiple_choice_with_a_language_model_loss(padded_batch: Batch) -> None:
    """The double-heads model of transformers: the choice loss plus half the token loss, and all gradients."""
    hf_model = build_hf(hf.OpenAIGPTDoubleHeadsModel)
    batch = replace(label_next(padded_batch), rows_per_feature=torch.tensor([2, 2]))
    batch = batch.with_labels(choice=torch.tensor([1, 0]))
    real = batch.attention_mask.view(2, 2, -1)
    ids = batch.input_ids.view(2, 2, -1)
    hf_output = hf_model(
        input_ids=ids,
        mc_token_ids=real.sum(dim=2) - 1,
        labels=ids.masked_fill(~real, IGNORE),
        mc_labels=batch.labels["choice"],
    )
    (hf_output.mc_loss + 0.5 * hf_output.loss).backward()

    encoder = build_ours(hf_model, SPEC.huggingface.prefix)
    head = MultipleChoice(CONFIG.hidden_size)
    weights = hf_model.state_dict()
    vector, constant = (weights[f"multiple_choice_head.summary.{part}"] for part in ("weight", "bias"))
    head.load_state_dict({"vector.weight": vector, "constant": constant})
    ours = add_language_model(Model(encoder, {"choice": head}), 0.5).eval()
    _, found = accumulate_gradients(ours, [batch], ours.counts(batch), torch.device("cpu"), "float32")
    assert found == pytest.approx({"choice": hf_output.mc_loss.item(), "clm": hf_output.loss.item()}, rel=1e-5)
    gradients = {name: weight.grad for name, weight in hf_model.transformer.named_parameters()}
    for name, expected in translate(gradients).items():
        gradient = encoder.get_parameter(name).grad
        assert gradient is not None
        close(gradient, expected, COMPOSITE)


def test_our_classifier_is_the_network_of_transformers_and_one_layer(tmp_path: Path, padded_batch: Batch) -> None:
    tokenizer = train(["a fox and an ox"] * 2, vocab_size=37)
    head = SequenceClassification(CONFIG.hidden_size, 5)
    ours = Model(build_ours(build_hf(hf.OpenAIGPTModel)), {"class": head}).eval()
    save_model(tmp_path / "classes", ours, tokenizer, metadata={})
    hf_model = transformers.AutoModel.from_pretrained(tmp_path / "classes").eval()
    states = hf_model(padded_batch.input_ids).last_hidden_state
    last = states[torch.arange(4), padded_batch.attention_mask.sum(dim=1) - 1]
    stored = load_file(tmp_path / "classes" / "model.safetensors")
    expected = last @ stored["classifier.weight"].T + stored["classifier.bias"]
    close(ours(padded_batch)["class"]["logits"], expected, COMPOSITE)
