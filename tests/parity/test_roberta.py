"""Our RoBERTa beside that of Hugging Face transformers, both ways, with the same weights (1e-5; 1e-4 for the whole)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.parity.agreement import COMPOSITE, SIMPLE, close
from torch import Tensor, nn

from bertkit import api
from bertkit.batch import IGNORE, Batch
from bertkit.checkpoint.model_folder import ModelFolder, save_model
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
    """Weights that are neither constant nor near zero."""
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm" in name.lower() and "weight" in name else 0.0, std=0.2)


def build_theirs(kind: str, **changes: Any) -> Any:
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
    """Rows of two segments, padded as RoBERTa pads."""
    return replace(padded_batch, input_ids=padded_batch.input_ids.masked_fill(~padded_batch.attention_mask, 1))


@pytest.fixture(scope="module")
def tokenizer() -> ByteLevelBPE:
    trained = train(TEXTS, vocab_size=277)
    assert trained.vocab_size == 277
    return trained


def their_inputs(batch: Batch) -> dict[str, Tensor]:
    """Without segments: of RoBERTa's there is one."""
    return {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask.long()}


def assert_same_states(ours: Encoder, theirs: Any, batch: Batch) -> None:
    real = batch.attention_mask
    with torch.no_grad():
        output = ours.eval()(batch, output_hidden_states=True)
        expected = theirs(**their_inputs(batch), output_hidden_states=True)
    for our_states, their_states in zip(output.layers, expected.hidden_states, strict=True):
        close(our_states[real], their_states[real], COMPOSITE)
    if expected.pooler_output is not None:
        close(output.pooled, expected.pooler_output, COMPOSITE)


def assert_same_answers(model: Model, theirs: Any, batch: Batch) -> None:
    (name,) = model.objectives
    real = batch.attention_mask
    inputs = their_inputs(batch)
    if name == "choice":
        inputs = {key: each[None] for key, each in inputs.items()}
    with torch.no_grad():
        answers, expected = model.eval()(batch)[name], theirs(**inputs)
    if name == "span":
        for end in ("start", "end"):
            close(answers[end][real], expected[f"{end}_logits"][real], SIMPLE)
    elif name in ("mlm", "tags"):
        close(answers["logits"].view(*real.shape, -1)[real], expected.logits[real], COMPOSITE)
    elif name == "number":
        close(answers["value"], expected.logits[:, 0], SIMPLE)
    else:
        close(answers["logits"], expected.logits, SIMPLE)


def test_embeddings(batch: Batch, tmp_path: Path) -> None:
    theirs = build_theirs("RobertaModel")
    theirs.save_pretrained(tmp_path)
    ours, real = ModelFolder.open(tmp_path).load_encoder().eval(), batch.attention_mask
    assert isinstance(ours, Roberta)
    states = ours.embeddings(batch.input_ids, torch.zeros_like(batch.segment_ids))
    close(states[real], theirs.embeddings(batch.input_ids)[real], SIMPLE)


def test_a_row_of_all_positions(tmp_path: Path) -> None:
    """Their table has 43 rows, the first two of which no token has."""
    theirs = build_theirs("RobertaModel")
    theirs.save_pretrained(tmp_path)
    ids = torch.randint(5, 277, (2, ModelFolder.open(tmp_path).config.max_positions))
    assert ids.shape[1] == 41
    row = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=ids > 0, labels={})
    assert_same_states(ModelFolder.open(tmp_path).load_encoder(), theirs, row)


@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "relu"])
def test_an_encoder_of_theirs_loads_here(tmp_path: Path, batch: Batch, activation: str) -> None:
    theirs = build_theirs("RobertaModel", hidden_act=activation)
    theirs.save_pretrained(tmp_path)
    assert_same_states(ModelFolder.open(tmp_path).load_encoder(), theirs, batch)


def test_an_encoder_of_ours_loads_there(tmp_path: Path, batch: Batch, tokenizer: ByteLevelBPE) -> None:
    encoder = Roberta(CONFIG)
    randomize(encoder)
    save_model(tmp_path, Model(encoder, {}), tokenizer, metadata={})
    theirs, report = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert isinstance(theirs, transformers.RobertaModel)
    assert_same_states(encoder, theirs.eval(), batch)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)("The <mask>").input_ids == [
        0,
        *tokenizer.encode("The <mask>", specials=True).ids,
        2,
    ]


@pytest.mark.parametrize("name", list(HEADS))
def test_a_head_of_theirs_loads_here(tmp_path: Path, batch: Batch, name: str) -> None:
    theirs = build_theirs(THEIRS[name], num_labels={"number": 1, "choice": 1, "span": 2}.get(name, 3))
    theirs.save_pretrained(tmp_path)
    assert_same_answers(ModelFolder.open(tmp_path).load_model(with_head(name)), theirs, batch)


@pytest.mark.parametrize("name", ["class", "labels", "number"])
def test_an_encoder_has_the_layer_of_the_classifier_for_its_pooler(tmp_path: Path, name: str) -> None:
    theirs = build_theirs(THEIRS[name])
    theirs.save_pretrained(tmp_path)
    encoder = ModelFolder.open(tmp_path).load_encoder()
    assert isinstance(encoder, Roberta)
    assert torch.equal(encoder.pooler.dense.weight, theirs.classifier.dense.weight)


@pytest.mark.parametrize("name", list(HEADS))
def test_a_head_of_ours_loads_there(tmp_path: Path, batch: Batch, tokenizer: ByteLevelBPE, name: str) -> None:
    encoder = Roberta(CONFIG)
    model = Model(encoder, with_head(name)(encoder))
    randomize(model)
    save_model(tmp_path, model, tokenizer, metadata={})
    theirs, report = getattr(transformers, THEIRS[name]).from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    # Their models for words and tokens have no pooler; ours has one always.
    assert all("pooler" in key for key in report["unexpected_keys"])
    assert bool(report["unexpected_keys"]) == (name in ("mlm", "tags", "span"))
    assert theirs.config.architectures == [THEIRS[name]]
    assert_same_answers(model, theirs.eval(), batch)
    again = ModelFolder.open(tmp_path).load_model(with_head(name))
    assert all(torch.equal(tensor, model.state_dict()[key]) for key, tensor in again.state_dict().items())


def test_masked_words_loss_and_gradients(batch: Batch, tmp_path: Path) -> None:
    theirs = build_theirs("RobertaForMaskedLM")
    theirs.save_pretrained(tmp_path)
    model = ModelFolder.open(tmp_path).load_model(with_head("mlm")).eval()
    chosen = batch.attention_mask & (torch.arange(13) % 3 == 1)
    labels = batch.input_ids.masked_fill(~chosen, IGNORE)
    term = model.loss(model(batch.with_labels(mlm=labels)), batch.with_labels(mlm=labels))["mlm"]
    expected = theirs(**their_inputs(batch), labels=labels).loss
    close(term.sum / term.count, expected, COMPOSITE)
    (term.sum / term.count).backward()  # type: ignore[no-untyped-call]
    expected.backward()
    gradients = {key: weight.grad for key, weight in theirs.named_parameters()}
    for ours, names in HF_NAMES.items():
        if ours.startswith("pooler"):
            continue
        for layer in range(CONFIG.num_layers):
            wanted = torch.cat([gradients[SPEC.huggingface.prefix + name.format(layer=layer)] for name in names])
            found = model.get_parameter(f"encoder.{ours.format(layer=layer)}").grad
            assert found is not None
            close(found, wanted, COMPOSITE)


def test_a_folder_of_theirs_fills_blanks(tmp_path: Path, tokenizer: ByteLevelBPE) -> None:
    theirs = build_theirs("RobertaForMaskedLM")
    theirs.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    theirs_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "The fox  <mask> to the<mask>."
    wanted = theirs_tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        chances = theirs(**wanted).logits[0][wanted.input_ids[0] == tokenizer.mask_id].softmax(dim=-1)
    assert ModelFolder.open(tmp_path).tokenizer.fingerprint == tokenizer.fingerprint
    for blank, row in zip(load(tmp_path).fill(text, top_k=7), chances, strict=True):
        close(torch.tensor([guess.probability for guess in blank]), row.topk(7).values, SIMPLE)


def test_a_folder_of_theirs_is_fine_tuned_and_they_answer_as_we_do(tmp_path: Path, tokenizer: ByteLevelBPE) -> None:
    """A pair of texts, from their masked-word model to their classifier."""
    build_theirs("RobertaForMaskedLM").save_pretrained(tmp_path / "base")
    tokenizer.save(tmp_path / "base")
    words = ["fox", "ox", "den", "wet", "dry"]
    rows = [f"the {words[n % 5]} went,a {words[n * n % 5]} is {words[n % 3]},{('no', 'yes')[n % 2]}" for n in range(99)]
    (tmp_path / "pairs.csv").write_text("\n".join(["sentence1,sentence2,label", *rows]), encoding="utf-8")
    run = tmp_path / "run"
    api.finetune(tmp_path / "pairs.csv", model=tmp_path / "base", output=run, epochs=1, lr=1e-4, progress="quiet")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(run / "model").eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(run / "model")
    task, ours = load(run).task, ModelFolder.open(run).tokenizer
    model = ModelFolder.open(run).load_model(task.objectives)
    examples = [TextExample("1", "the fox went", "a den is wet"), TextExample("2", "An ox", "dry")]
    for example, answer in zip(examples, predict(model, task, examples, ours, precision="float32"), strict=True):
        with torch.no_grad():
            inputs = their_tokenizer(example.first, example.second, return_tensors="pt")
            chances = theirs(**inputs).logits[0].softmax(dim=-1)
        named = {theirs.config.id2label[place]: float(chance) for place, chance in enumerate(chances)}
        assert answer.scores == pytest.approx(named, abs=SIMPLE)
