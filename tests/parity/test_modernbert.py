"""ModernBERT equals that of Hugging Face transformers with the same weights, in both directions (1e-5)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.parity.agreement import SIMPLE, close, close_outputs
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.modernbert import ModernBert, ModernBertConfig
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.objectives.token_classification import TokenClassification
from bertkit.pretraining.task import PretrainingTask
from bertkit.text.wordpiece import WordPiece, train

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

TEXTS = ["The fox and the ox went to the den.", "The ox's den was dry; the fox's, wet."] * 2
HEADS: dict[str, Callable[[Encoder], Objective]] = {
    "mlm": lambda encoder: MaskedLanguageModel.build(encoder, PretrainingTask()),
    "class": lambda encoder: SequenceClassification(encoder.hidden_size, 3),
    "labels": lambda encoder: MultiLabelClassification(encoder.hidden_size, 3),
    "number": lambda encoder: Regression(encoder.hidden_size),
    "choice": lambda encoder: MultipleChoice(encoder.hidden_size),
    "tags": lambda encoder: TokenClassification(encoder.hidden_size, 3),
    "span": lambda encoder: SpanExtraction(encoder.hidden_size),
}
THEIRS = {
    "mlm": "ModernBertForMaskedLM",
    **dict.fromkeys(("class", "labels", "number"), "ModernBertForSequenceClassification"),
    "choice": "ModernBertForMultipleChoice",
    "tags": "ModernBertForTokenClassification",
    "span": "ModernBertForQuestionAnswering",
}


def with_head(name: str) -> Callable[[Encoder], Mapping[str, Objective]]:
    return lambda encoder: {name: HEADS[name](encoder)}


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return train(TEXTS, vocab_size=47)


def build_hf(kind: str, **changes: Any) -> Any:
    """Their own randomly initialised network; a window of 3 tokens on each side, so that rows are cut into blocks."""
    sizes = {"vocab_size": 99, "hidden_size": 28, "num_hidden_layers": 5, "num_attention_heads": 2}
    shape = {**sizes, "intermediate_size": 37, "max_position_embeddings": 43, "local_attention": 6, "pad_token_id": 0}
    config = transformers.ModernBertConfig(**{**shape, "initializer_range": 0.2, **changes})
    return getattr(transformers, kind)(config).eval()


def ours_like(tokenizer: WordPiece, **changes: Any) -> ModernBertConfig:
    shape = {"hidden_size": 28, "num_layers": 5, "num_heads": 2, "intermediate_size": 37, "initializer_range": 0.2}
    fields = {**shape, "vocab_size": tokenizer.vocab_size, "max_positions": 43, "local_attention": 6, **changes}
    return ModernBertConfig(**fields)


def hf_inputs(batch: Batch) -> dict[str, Tensor]:
    return {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask.long()}


def assert_same_states(ours: Encoder, hf: Any, batch: Batch) -> None:
    real = batch.attention_mask
    with torch.no_grad():
        output = ours.eval()(batch, output_hidden_states=True)
        expected = hf(**hf_inputs(batch), output_hidden_states=True)
    close(output.hidden_states[real], expected.last_hidden_state[real], SIMPLE)
    for our_states, hf_states in zip(output.layers, expected.hidden_states, strict=True):
        close(our_states[real], hf_states[real], SIMPLE)


def assert_same_outputs(model: Model, hf: Any, batch: Batch) -> None:
    close_outputs(model, hf, batch, hf_inputs(batch), words=SIMPLE)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"global_attn_every_n_layers": 1},
        {"global_attn_every_n_layers": 2, "local_attention": 10},
        {
            "local_attention": 128,
            "hidden_activation": "gelu_pytorch_tanh",
            "classifier_activation": "gelu_pytorch_tanh",
        },
        {"global_rope_theta": 10_000.0, "local_rope_theta": 500.0, "norm_eps": 1e-3},
    ],
)
def test_an_encoder_of_transformers_loads(tmp_path: Path, padded_batch: Batch, changes: dict[str, Any]) -> None:
    hf = build_hf("ModernBertModel", **changes)
    hf.save_pretrained(tmp_path)
    assert_same_states(ModelFolder.open(tmp_path).load_encoder(), hf, padded_batch)


def test_a_config_of_older_versions_means_the_same(tmp_path: Path, padded_batch: Batch) -> None:
    """The published folders have the number of layers between global ones and two thetas."""
    hf = build_hf("ModernBertModel", global_attn_every_n_layers=2, global_rope_theta=777.0)
    hf.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    thetas = {"global_rope_theta": 777.0, "local_rope_theta": 10_000.0, "global_attn_every_n_layers": 2}
    old = {key: value for key, value in config.items() if key not in ("layer_types", "rope_parameters")} | thetas
    new = ModelFolder.open(tmp_path).config
    (tmp_path / "config.json").write_text(json.dumps(old))
    assert ModelFolder.open(tmp_path).config == new
    assert (new.global_theta, new.global_every) == (777.0, 2)
    assert_same_states(ModelFolder.open(tmp_path).load_encoder(), hf, padded_batch)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("name", list(HEADS))
def test_a_head_of_transformers_loads(tmp_path: Path, padded_batch: Batch, name: str, pooling: str) -> None:
    labels = {"number": 1, "choice": 1, "span": 2}.get(name, 3)
    hf = build_hf(THEIRS[name], num_labels=labels, classifier_pooling=pooling)
    for bias in (part.bias for part in hf.modules() if getattr(part, "bias", None) is not None):
        nn.init.normal_(bias)
    hf.save_pretrained(tmp_path)
    assert_same_outputs(ModelFolder.open(tmp_path).load_model(with_head(name)), hf, padded_batch)


def test_transformers_loads_our_encoder(tmp_path: Path, padded_batch: Batch, tokenizer: WordPiece) -> None:
    encoder = ModernBert(ours_like(tokenizer))
    save_model(tmp_path, Model(encoder, {}), tokenizer, metadata={})
    hf, report = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert isinstance(hf, transformers.ModernBertModel)
    assert (hf.config.cls_token_id, hf.config.sep_token_id) == (tokenizer.cls_id, tokenizer.sep_id)
    assert_same_states(encoder, hf.eval(), replace(padded_batch, input_ids=padded_batch.input_ids % 47))
    inputs = transformers.AutoTokenizer.from_pretrained(tmp_path)("The fox", return_tensors="pt")
    ids = [tokenizer.start_id, *tokenizer.encode("The fox").ids, tokenizer.end_id]
    assert inputs["input_ids"].tolist() == [ids]
    hf(**inputs)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("name", list(HEADS))
def test_transformers_loads_our_heads(
    tmp_path: Path, padded_batch: Batch, tokenizer: WordPiece, name: str, pooling: str
) -> None:
    encoder = ModernBert(ours_like(tokenizer, pooling=pooling, global_every=2))
    model = Model(encoder, with_head(name)(encoder))
    for weight in model.objectives.parameters():
        nn.init.normal_(weight, std=0.3)
    save_model(tmp_path, model, tokenizer, metadata={"task": {"labels": list("abc")}})
    hf, report = getattr(transformers, THEIRS[name]).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert hf.config.architectures == [THEIRS[name]]
    assert_same_outputs(model, hf.eval(), replace(padded_batch, input_ids=padded_batch.input_ids % 47))


def test_fine_tuning_starts_from_the_head_of_the_masked_lm(tmp_path: Path) -> None:
    """As in transformers, where both classes call it ``head``."""
    hf = build_hf("ModernBertForMaskedLM")
    hf.save_pretrained(tmp_path)
    encoder = ModelFolder.open(tmp_path).load_encoder()
    assert isinstance(encoder, ModernBert)
    assert torch.equal(encoder.prediction_head.dense.weight, hf.head.dense.weight)
    assert "decoder.weight" not in load_file(tmp_path / "model.safetensors")


def test_rows_of_8192_tokens_equal_those_of_transformers(tmp_path: Path) -> None:
    hf = build_hf("ModernBertModel", max_position_embeddings=8192, local_attention=128, num_hidden_layers=3)
    hf.save_pretrained(tmp_path)
    ids = torch.randint(5, 99, (2, 8192))
    real = torch.arange(8192) < torch.tensor([[8192], [300]])
    batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=real, labels={})
    with torch.no_grad():
        ours = ModelFolder.open(tmp_path).load_encoder().eval()(batch).hidden_states
        expected = hf(input_ids=ids, attention_mask=real.long()).last_hidden_state
    close(ours[real], expected[real], SIMPLE)
