"""RoBERTa equals that of Hugging Face transformers with the same weights, in both directions (1e-5; encoder 1e-4)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.parity.agreement import COMPOSITE, SIMPLE, close, close_outputs
from torch import Tensor, nn

import bertkit
from bertkit.batch import IGNORE, Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Encoder, Objective
from bertkit.encoders.roberta import HF_NAMES, SPEC, Roberta, RobertaConfig
from bertkit.inference.pipeline import load
from bertkit.inference.predict import predict
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.objectives.token_classification import TokenClassification
from bertkit.task_types import TextExample
from bertkit.text.byte_bpe import ByteLevelBPE, train

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

TEXTS = ["The fox and the ox went to the den.", "The ox's den was dry; the fox's, wet."] * 2
CONFIG = RobertaConfig(
    vocab_size=277, hidden_size=28, num_layers=3, num_heads=4, intermediate_size=37, num_positions=43
)
HEADS: dict[str, Callable[[Roberta], Objective]] = {
    "mlm": lambda encoder: MaskedLanguageModel(encoder.embeddings.word, layer_norm_eps=encoder.config.layer_norm_eps),
    "class": lambda encoder: SequenceClassification(encoder.hidden_size, 3),
    "labels": lambda encoder: MultiLabelClassification(encoder.hidden_size, 3),
    "number": lambda encoder: Regression(encoder.hidden_size),
    "choice": lambda encoder: MultipleChoice(encoder.hidden_size),
    "tags": lambda encoder: TokenClassification(encoder.hidden_size, 3),
    "span": lambda encoder: SpanExtraction(encoder.hidden_size),
}
THEIRS = {
    "mlm": "RobertaForMaskedLM",
    "class": "RobertaForSequenceClassification",
    "labels": "RobertaForSequenceClassification",
    "number": "RobertaForSequenceClassification",
    "choice": "RobertaForMultipleChoice",
    "tags": "RobertaForTokenClassification",
    "span": "RobertaForQuestionAnswering",
}


def with_head(name: str) -> Callable[[Encoder], Mapping[str, Objective]]:
    def build(encoder: Encoder) -> Mapping[str, Objective]:
        assert isinstance(encoder, Roberta)
        return {name: HEADS[name](encoder)}

    return build


def randomize(model: nn.Module) -> None:
    """Set weights that are neither constant nor near zero."""
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm" in name.lower() and "weight" in name else 0.0, std=0.2)


def build_hf(kind: str, **changes: Any) -> Any:
    config = transformers.RobertaConfig(
        vocab_size=CONFIG.vocab_size,
        hidden_size=CONFIG.hidden_size,
        num_hidden_layers=CONFIG.num_layers,
        num_attention_heads=CONFIG.num_heads,
        intermediate_size=CONFIG.intermediate_size,
        max_position_embeddings=CONFIG.num_positions,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        **changes,
    )
    model = getattr(transformers, kind)(config).eval()
    randomize(model)
    return model


@pytest.fixture
def batch(padded_batch: Batch) -> Batch:
    """Rows of two segments, with RoBERTa's padding id."""
    return replace(padded_batch, input_ids=padded_batch.input_ids.masked_fill(~padded_batch.attention_mask, 1))


@pytest.fixture(scope="module")
def tokenizer() -> ByteLevelBPE:
    trained = train(TEXTS, vocab_size=277)
    assert trained.vocab_size == 277
    return trained


def hf_inputs(batch: Batch) -> dict[str, Tensor]:
    """The inputs for transformers, without segments: RoBERTa has only one."""
    return {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask.long()}


def assert_same_states(ours: Encoder, hf: Any, batch: Batch) -> None:
    real = batch.attention_mask
    with torch.no_grad():
        output = ours.eval()(batch, output_hidden_states=True)
        expected = hf(**hf_inputs(batch), output_hidden_states=True)
    for our_states, hf_states in zip(output.layers, expected.hidden_states, strict=True):
        close(our_states[real], hf_states[real], COMPOSITE)
    if expected.pooler_output is not None:
        close(output.pooled, expected.pooler_output, COMPOSITE)


def assert_same_outputs(model: Model, hf: Any, batch: Batch) -> None:
    close_outputs(model, hf, batch, hf_inputs(batch), words=COMPOSITE)


def test_embeddings(batch: Batch, tmp_path: Path) -> None:
    hf = build_hf("RobertaModel")
    hf.save_pretrained(tmp_path)
    ours, real = ModelFolder.open(tmp_path).load_encoder().eval(), batch.attention_mask
    assert isinstance(ours, Roberta)
    states = ours.embeddings(batch.input_ids, torch.zeros_like(batch.segment_ids))
    close(states[real], hf.embeddings(batch.input_ids)[real], SIMPLE)


def test_a_row_may_use_all_positions(tmp_path: Path) -> None:
    """The position table has 43 rows, the first two of which no token uses."""
    hf = build_hf("RobertaModel")
    hf.save_pretrained(tmp_path)
    ids = torch.randint(5, 277, (2, ModelFolder.open(tmp_path).config.max_positions))
    assert ids.shape[1] == 41
    row = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=ids > 0, labels={})
    assert_same_states(ModelFolder.open(tmp_path).load_encoder(), hf, row)


@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "relu"])
def test_an_encoder_of_transformers_loads(tmp_path: Path, batch: Batch, activation: str) -> None:
    hf = build_hf("RobertaModel", hidden_act=activation)
    hf.save_pretrained(tmp_path)
    assert_same_states(ModelFolder.open(tmp_path).load_encoder(), hf, batch)


def test_transformers_loads_our_encoder(tmp_path: Path, batch: Batch, tokenizer: ByteLevelBPE) -> None:
    encoder = Roberta(CONFIG)
    randomize(encoder)
    save_model(tmp_path, Model(encoder, {}), tokenizer, metadata={})
    hf, report = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert isinstance(hf, transformers.RobertaModel)
    assert_same_states(encoder, hf.eval(), batch)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)("The <mask>").input_ids == [
        0,
        *tokenizer.encode("The <mask>", specials=True).ids,
        2,
    ]


@pytest.mark.parametrize("name", list(HEADS))
def test_a_head_of_transformers_loads(tmp_path: Path, batch: Batch, name: str) -> None:
    hf = build_hf(THEIRS[name], num_labels={"number": 1, "choice": 1, "span": 2}.get(name, 3))
    hf.save_pretrained(tmp_path)
    assert_same_outputs(ModelFolder.open(tmp_path).load_model(with_head(name)), hf, batch)


@pytest.mark.parametrize("name", ["class", "labels", "number"])
def test_the_dense_layer_of_a_classifier_is_the_pooler_of_the_encoder(tmp_path: Path, name: str) -> None:
    hf = build_hf(THEIRS[name])
    hf.save_pretrained(tmp_path)
    encoder = ModelFolder.open(tmp_path).load_encoder()
    assert isinstance(encoder, Roberta)
    assert torch.equal(encoder.pooler.dense.weight, hf.classifier.dense.weight)


@pytest.mark.parametrize("name", list(HEADS))
def test_transformers_loads_our_head(tmp_path: Path, batch: Batch, tokenizer: ByteLevelBPE, name: str) -> None:
    encoder = Roberta(CONFIG)
    model = Model(encoder, with_head(name)(encoder))
    randomize(model)
    save_model(tmp_path, model, tokenizer, metadata={})
    hf, report = getattr(transformers, THEIRS[name]).from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"], "a pooler that no head reads is left out"
    assert hf.config.architectures == [THEIRS[name]]
    assert_same_outputs(model, hf.eval(), batch)
    again = ModelFolder.open(tmp_path).load_model(with_head(name))
    pooled = any(head.reads_pooled for head in model.objectives.values())
    kept = {key: tensor for key, tensor in again.state_dict().items() if pooled or "pooler" not in key}
    assert all(torch.equal(tensor, model.state_dict()[key]) for key, tensor in kept.items())


def test_masked_lm_loss_and_gradients(batch: Batch, tmp_path: Path) -> None:
    hf = build_hf("RobertaForMaskedLM")
    hf.save_pretrained(tmp_path)
    model = ModelFolder.open(tmp_path).load_model(with_head("mlm")).eval()
    chosen = batch.attention_mask & (torch.arange(13) % 3 == 1)
    labels = batch.input_ids.masked_fill(~chosen, IGNORE)
    term = model.loss(model(batch.with_labels(mlm=labels)), batch.with_labels(mlm=labels))["mlm"]
    expected = hf(**hf_inputs(batch), labels=labels).loss
    close(term.sum / term.count, expected, COMPOSITE)
    (term.sum / term.count).backward()  # type: ignore[no-untyped-call]
    expected.backward()
    gradients = {key: weight.grad for key, weight in hf.named_parameters()}
    for ours, names in HF_NAMES.items():
        if ours.startswith("pooler"):
            continue
        for layer in range(CONFIG.num_layers):
            wanted = torch.cat([gradients[SPEC.huggingface.prefix + name.format(layer=layer)] for name in names])
            found = model.get_parameter(f"encoder.{ours.format(layer=layer)}").grad
            assert found is not None
            close(found, wanted, COMPOSITE)


def test_a_folder_of_transformers_fills_masks(tmp_path: Path, tokenizer: ByteLevelBPE) -> None:
    hf = build_hf("RobertaForMaskedLM")
    hf.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    theirs_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "The fox  <mask> to the<mask>."
    wanted = theirs_tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        probabilities = hf(**wanted).logits[0][wanted.input_ids[0] == tokenizer.mask_id].softmax(dim=-1)
    assert ModelFolder.open(tmp_path).tokenizer.fingerprint == tokenizer.fingerprint
    for blank, row in zip(load(tmp_path).fill(text, top_k=7), probabilities, strict=True):
        close(torch.tensor([guess.probability for guess in blank]), row.topk(7).values, SIMPLE)


def test_a_folder_of_transformers_is_finetuned_and_predictions_agree(tmp_path: Path, tokenizer: ByteLevelBPE) -> None:
    """Classification of pairs, starting from a masked language model of transformers."""
    build_hf("RobertaForMaskedLM").save_pretrained(tmp_path / "base")
    tokenizer.save(tmp_path / "base")
    words = ["fox", "ox", "den", "wet", "dry"]
    rows = [f"the {words[n % 5]} went,a {words[n * n % 5]} is {words[n % 3]},{('no', 'yes')[n % 2]}" for n in range(99)]
    (tmp_path / "pairs.csv").write_text("\n".join(["sentence1,sentence2,label", *rows]), encoding="utf-8")
    run = tmp_path / "run"
    bertkit.finetune(
        tmp_path / "pairs.csv",
        model=tmp_path / "base",
        output=run,
        epochs=1,
        lr=1e-4,
        set=["task.pooling=cls"],
        progress="quiet",
    )
    hf = transformers.AutoModelForSequenceClassification.from_pretrained(run / "model").eval()
    hf_tokenizer = transformers.AutoTokenizer.from_pretrained(run / "model")
    task, ours = load(run).task, ModelFolder.open(run).tokenizer
    model = ModelFolder.open(run).load_model(task.objectives)
    examples = [TextExample("1", "the fox went", "a den is wet"), TextExample("2", "An ox", "dry")]
    for example, answer in zip(examples, predict(model, task, examples, ours, precision="float32"), strict=True):
        with torch.no_grad():
            inputs = hf_tokenizer(example.first, example.second, return_tensors="pt")
            probabilities = hf(**inputs).logits[0].softmax(dim=-1)
        named = {hf.config.id2label[number]: float(probability) for number, probability in enumerate(probabilities)}
        assert answer.scores == pytest.approx(named, abs=SIMPLE)
