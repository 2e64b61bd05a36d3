"""Model folders between us and Hugging Face transformers: the same outputs, without an export step (1e-5)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.parity.agreement import COMPOSITE, SIMPLE
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import ModelFolder, save_model
from bertkit.contracts import Encoder, Objective, Tokenizer
from bertkit.data.features import assemble, collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.inference.pipeline import load
from bertkit.inference.predict import predict
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.multi_label import MultiLabelClassification
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.objectives.token_classification import TokenClassification
from bertkit.task_types import MultiLabelTask, RegressionTask, TextClassificationTask, TextExample
from bertkit.text.wordpiece import WordPiece

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(letter) for letter in range(ord("a"), ord("z") + 1))]
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}
TASKS = {
    "class": TextClassificationTask(name="files:t.csv", metric="accuracy", labels=("dry", "wet", "odd")),
    "labels": MultiLabelTask(name="files:t.csv", labels=("dry", "wet", "odd")),
    "number": RegressionTask(name="files:t.csv", metric="pearson"),
}
SENTENCES = [
    "The ferry had already left when we reached the quay.",
    "Nobody in the café knew why the old clock had stopped at a quarter past nine; it had simply happened.",
    "Yes.",
    "In 1867, 1,204 people signed the petition (most of them twice), and it was lost.",
]


def heads_of(encoder: Encoder, names: tuple[str, ...]) -> dict[str, Objective]:
    assert isinstance(encoder, Bert)
    every: dict[str, Callable[[], Objective]] = {
        "mlm": lambda: MaskedLanguageModel(
            encoder.embeddings.word,
            activation=encoder.config.activation,
            layer_norm_eps=encoder.config.layer_norm_eps,
        ),
        "nsp": lambda: NextSentencePrediction(encoder.hidden_size),
        "class": lambda: SequenceClassification(encoder.hidden_size, 3),
        "labels": lambda: MultiLabelClassification(encoder.hidden_size, 3),
        "number": lambda: Regression(encoder.hidden_size),
        "tags": lambda: TokenClassification(encoder.hidden_size, 3),
        "span": lambda: SpanExtraction(encoder.hidden_size),
    }
    return {name: every[name]() for name in names}


def randomize(model: nn.Module) -> None:
    """Weights that are neither constant nor near zero."""
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm" in name.lower() and "weight" in name else 0.0, std=0.2)


def build_ours(names: tuple[str, ...], activation: str = "gelu") -> Model:
    shape = BertConfig(
        vocab_size=99,
        hidden_size=28,
        num_layers=3,
        num_heads=4,
        intermediate_size=37,
        max_positions=41,
        num_segments=3,
        activation=activation,
    )
    encoder = Bert(shape)
    model = Model(encoder, heads_of(encoder, names))
    randomize(model)
    return model.eval()


@pytest.fixture
def tokenizer(tmp_path: Path) -> WordPiece:
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    return WordPiece.load(tmp_path / "vocab.txt")


def their_inputs(batch: Batch) -> dict[str, Tensor]:
    return {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.attention_mask.long(),
    }


def our_answers(model: Model, batch: Batch) -> dict[str, Tensor]:
    """By the names of their outputs."""
    with torch.no_grad():
        outputs: Mapping[str, Mapping[str, Tensor]] = model(batch)
    answers = {}
    for name, output in outputs.items():
        if name == "span":
            return {place: answer[batch.attention_mask] for place, answer in output.items()}
        answer = output["value"][:, None] if name == "number" else output["logits"]
        answers[name] = (
            answer.view(*batch.input_ids.shape, -1)[batch.attention_mask] if name in ("mlm", "tags") else answer
        )
    return answers


KINDS = {"regression": "number", "multi_label_classification": "labels"}


def their_answers(model: Any, batch: Batch) -> dict[str, Tensor]:
    with torch.no_grad():
        output = model(**their_inputs(batch))
    if type(model).__name__ == "BertForQuestionAnswering":
        return {place: output[f"{place}_logits"][batch.attention_mask] for place in ("start", "end")}
    if type(model).__name__ == "BertForTokenClassification":
        return {"tags": output.logits[batch.attention_mask]}
    names = {"prediction_logits": "mlm", "seq_relationship_logits": "nsp"}
    if type(model).__name__ in ("BertForMaskedLM", "BertForNextSentencePrediction"):
        names = {"logits": "mlm" if "Masked" in type(model).__name__ else "nsp"}
    elif type(model).__name__ == "BertForSequenceClassification":
        names = {"logits": KINDS.get(model.config.problem_type, "class")}
    answers = {name: output[key] for key, name in names.items()}
    return {name: answer[batch.attention_mask] if name == "mlm" else answer for name, answer in answers.items()}


def close(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], tolerance: float) -> None:
    assert set(ours) == set(theirs)
    for name, answer in ours.items():
        torch.testing.assert_close(answer, theirs[name], rtol=0, atol=tolerance)


HEADS = {
    "BertForPreTraining": ("mlm", "nsp"),
    "BertForMaskedLM": ("mlm",),
    "BertForNextSentencePrediction": ("nsp",),
    "BertForSequenceClassification": ("class",),
    "BertForSequenceClassification, several labels": ("labels",),
    "BertForSequenceClassification, a number": ("number",),
    "BertForQuestionAnswering": ("span",),
    "BertForTokenClassification": ("tags",),
}


def their_class(case: str) -> Any:
    return getattr(transformers, case.partition(",")[0])


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("case", list(HEADS))
def test_what_we_save_they_load(
    tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch, case: str, activation: str
) -> None:
    model = build_ours(HEADS[case], activation)
    task = TASKS.get(HEADS[case][0])
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": task.record()} if task else {})
    theirs, report = their_class(case).from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not report["missing_keys"]
    # Their masked language model has no pooler; ours has one always.
    assert all("pooler" in name for name in report["unexpected_keys"])
    assert theirs.config.architectures == [case.partition(",")[0]]
    close(our_answers(model, padded_batch), their_answers(theirs.eval(), padded_batch), SIMPLE)


def test_an_encoder_that_we_save_they_load(tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch) -> None:
    model = build_ours(())
    save_model(tmp_path / "model", model, tokenizer, metadata={})
    theirs, report = transformers.AutoModel.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert type(theirs) is transformers.BertModel
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    compare_states(model.encoder, theirs.eval(), padded_batch, SIMPLE)


def compare_states(ours: nn.Module, theirs: Any, batch: Batch, tolerance: float) -> None:
    with torch.no_grad():
        output, expected = ours(batch), theirs(**their_inputs(batch))
    real = batch.attention_mask
    torch.testing.assert_close(output.hidden_states[real], expected.last_hidden_state[real], rtol=0, atol=tolerance)
    torch.testing.assert_close(output.pooled, expected.pooler_output, rtol=0, atol=tolerance)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("case", list(HEADS))
def test_what_they_save_we_load(tmp_path: Path, padded_batch: Batch, case: str, activation: str) -> None:
    shape = transformers.BertConfig(
        vocab_size=99,
        hidden_size=28,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=37,
        max_position_embeddings=41,
        type_vocab_size=3,
        hidden_act=ACTIVATIONS[activation],
        num_labels={"number": 1, "span": 2}.get(HEADS[case][0], 3),
        problem_type=next((kind for kind, name in KINDS.items() if HEADS[case] == (name,)), None),
    )
    theirs = their_class(case)(shape).eval()
    randomize(theirs)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = ModelFolder.open(tmp_path / "theirs").load_model(lambda encoder: heads_of(encoder, HEADS[case])).eval()
    close(our_answers(ours, padded_batch), their_answers(theirs, padded_batch), SIMPLE)


@pytest.mark.parametrize("form", ["safetensors in parts", "torch"])
def test_other_forms_in_which_they_save(tmp_path: Path, padded_batch: Batch, form: str) -> None:
    shape = transformers.BertConfig(vocab_size=99, hidden_size=28, num_hidden_layers=3, num_attention_heads=4)
    theirs = transformers.BertForPreTraining(shape).eval()
    randomize(theirs)
    theirs.save_pretrained(tmp_path, max_shard_size="100KB" if form == "safetensors in parts" else "5GB")
    if form == "torch":
        (tmp_path / "model.safetensors").unlink()
        torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    else:
        assert (tmp_path / "model.safetensors.index.json").exists()
    ours = ModelFolder.open(tmp_path).load_model(lambda encoder: heads_of(encoder, ("mlm", "nsp"))).eval()
    close(our_answers(ours, padded_batch), their_answers(theirs, padded_batch), SIMPLE)


def test_there_and_back_is_bit_equal(tmp_path: Path, tokenizer: WordPiece) -> None:
    model = build_ours(("mlm", "nsp"))
    save_model(tmp_path / "ours", model, tokenizer, metadata={})
    transformers.BertForPreTraining.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    back = ModelFolder.open(tmp_path / "theirs").load_model(lambda encoder: heads_of(encoder, ("mlm", "nsp")))
    assert ModelFolder.open(tmp_path / "theirs").config == ModelFolder.open(tmp_path / "ours").config
    for name, tensor in model.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor), name


def test_choices_are_scored_as_they_do_both_ways(tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch) -> None:
    """Two examples of two choices, theirs stacked along an axis and ours below each other."""
    batch = replace(padded_batch, choices=torch.tensor([2, 2])).with_labels(choice=torch.tensor([1, 0]))
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=28, num_layers=3, num_heads=4, num_segments=3))
    model = Model(encoder, {"choice": MultipleChoice(encoder.hidden_size)}).eval()
    randomize(model)
    save_model(tmp_path / "ours", model, tokenizer, metadata={})
    theirs = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        theirs.classifier.bias.fill_(0.3)
    theirs.save_pretrained(tmp_path / "theirs")
    back = (
        ModelFolder.open(tmp_path / "theirs")
        .load_model(lambda encoder: {"choice": MultipleChoice(encoder.hidden_size)})
        .eval()
    )
    inputs = {name: each.view(2, 2, -1) for name, each in their_inputs(batch).items()}
    with torch.no_grad():
        expected = theirs(**inputs, labels=batch.labels["choice"])
        ours = model(batch)["choice"]["logits"]
        outputs = back(batch)
        term = back.loss(outputs, batch)["choice"]
    torch.testing.assert_close(ours + 0.3, expected.logits, rtol=0, atol=SIMPLE)
    torch.testing.assert_close(outputs["choice"]["logits"], expected.logits, rtol=0, atol=SIMPLE)
    torch.testing.assert_close(term.sum / term.count, expected.loss, rtol=0, atol=SIMPLE)


def test_labels_and_tokenizer_go_both_ways(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_model(tmp_path / "ours", build_ours(("class",)), tokenizer, metadata={"task": TASKS["class"].record()})
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    assert theirs.config.id2label == {0: "dry", 1: "wet", 2: "odd"}
    assert theirs.config.problem_type == "single_label_classification"
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert their_tokenizer("a b", "c", add_special_tokens=False)["input_ids"] == tokenizer.encode("a b c").ids
    theirs.save_pretrained(tmp_path / "theirs")
    their_tokenizer.save_pretrained(tmp_path / "theirs")
    assert ModelFolder.open(tmp_path / "theirs").metadata["labels"] == ["dry", "wet", "odd"]
    assert ModelFolder.open(tmp_path / "theirs").tokenizer.encode("b z a").ids == tokenizer.encode("b z a").ids


def batch_of(sentences: list[str], tokenizer: Tokenizer) -> Batch:
    features = [assemble(tokenizer, sentence, max_length=64) for sentence in sentences]
    return collate(features, pad_id=tokenizer.pad_id)


def test_real_weights_on_real_sentences(minilm: Path) -> None:
    """Six layers of a published model, from text to states, each side by its own tokenizer."""
    tokenizer = ModelFolder.open(minilm).tokenizer
    batch = batch_of(SENTENCES, tokenizer)
    theirs = transformers.BertModel.from_pretrained(minilm).eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    their_batch = their_tokenizer(SENTENCES, padding=True, return_tensors="pt")
    assert torch.equal(their_batch["input_ids"], batch.input_ids)
    compare_states(ModelFolder.open(minilm).load_encoder().eval(), theirs, batch, COMPOSITE)


def test_real_weights_saved_by_us_are_theirs_bit_for_bit(tmp_path: Path, minilm: Path) -> None:
    encoder = ModelFolder.open(minilm).load_encoder()
    save_model(tmp_path / "model", Model(encoder, {}), ModelFolder.open(minilm).tokenizer, metadata={})
    theirs = transformers.BertModel.from_pretrained(minilm).state_dict()
    for name, tensor in transformers.BertModel.from_pretrained(tmp_path / "model").state_dict().items():
        assert torch.equal(tensor, theirs[name]), name


def test_several_labels_are_told_and_learnt_as_they_do(
    tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch
) -> None:
    """Their model with our task, and their loss beside ours."""
    labels = torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1]])
    model = build_ours(("labels",))
    save_model(tmp_path / "ours", model, tokenizer, metadata={"task": TASKS["labels"].record()})
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    assert theirs.config.problem_type == "multi_label_classification"
    batch = padded_batch.with_labels(labels=labels)
    with torch.no_grad():
        term = model.loss(model(batch), batch)["labels"]
        expected = theirs(**their_inputs(batch), labels=labels.float()).loss
    torch.testing.assert_close(term.sum / term.count, expected, rtol=0, atol=SIMPLE)
    theirs.save_pretrained(tmp_path / "theirs")
    tokenizer.save(tmp_path / "theirs")
    task = load(tmp_path / "theirs").task
    ours = ModelFolder.open(tmp_path / "theirs").load_model(task.objectives)
    (prediction,) = predict(ours, task, [TextExample("1", "a b c")], tokenizer, precision="float32")
    inputs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")("a b c", return_tensors="pt")
    with torch.no_grad():
        shares = theirs(**inputs).logits[0].sigmoid().tolist()
    assert list(prediction.scores.values()) == pytest.approx(shares, abs=SIMPLE)
    assert prediction.label == tuple(name for name, share in prediction.scores.items() if share >= 0.5)
