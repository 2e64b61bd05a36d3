"""Model folders are exchanged with Hugging Face transformers without an export; outputs are equal to 1e-5."""

from __future__ import annotations

import json
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
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
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

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *(chr(character) for character in range(ord("a"), ord("z") + 1)),
]
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
    """Set weights that are neither constant nor near zero."""
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


def hf_inputs(batch: Batch) -> dict[str, Tensor]:
    return {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.attention_mask.long(),
    }


def our_outputs(model: Model, batch: Batch) -> dict[str, Tensor]:
    """Our outputs by the names that transformers gives to its own."""
    with torch.no_grad():
        outputs: Mapping[str, Mapping[str, Tensor]] = model(batch)
    answers = {}
    for name, output in outputs.items():
        if name == "span":
            return {end: answer[batch.attention_mask] for end, answer in output.items()}
        answer = output["value"][:, None] if name == "number" else output["logits"]
        answers[name] = (
            answer.view(*batch.input_ids.shape, -1)[batch.attention_mask] if name in ("mlm", "tags") else answer
        )
    return answers


KINDS = {"regression": "number", "multi_label_classification": "labels"}


def hf_outputs(model: Any, batch: Batch) -> dict[str, Tensor]:
    with torch.no_grad():
        output = model(**hf_inputs(batch))
    if type(model).__name__ == "BertForQuestionAnswering":
        return {end: output[f"{end}_logits"][batch.attention_mask] for end in ("start", "end")}
    if type(model).__name__ == "BertForTokenClassification":
        return {"tags": output.logits[batch.attention_mask]}
    names = {"prediction_logits": "mlm", "seq_relationship_logits": "nsp"}
    if type(model).__name__ in ("BertForMaskedLM", "BertForNextSentencePrediction"):
        names = {"logits": "mlm" if "Masked" in type(model).__name__ else "nsp"}
    elif type(model).__name__ == "BertForSequenceClassification":
        names = {"logits": KINDS.get(model.config.problem_type, "class")}
    answers = {name: output[key] for key, name in names.items()}
    return {name: answer[batch.attention_mask] if name == "mlm" else answer for name, answer in answers.items()}


def close(ours: Mapping[str, Tensor], hf: Mapping[str, Tensor], tolerance: float) -> None:
    assert set(ours) == set(hf)
    for name, answer in ours.items():
        torch.testing.assert_close(answer, hf[name], rtol=0, atol=tolerance)


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


def hf_class(case: str) -> Any:
    return getattr(transformers, case.partition(",")[0])


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("case", list(HEADS))
def test_transformers_loads_our_folders(
    tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch, case: str, activation: str
) -> None:
    model = build_ours(HEADS[case], activation)
    task = TASKS.get(HEADS[case][0])
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": task.record()} if task else {})
    hf, report = hf_class(case).from_pretrained(tmp_path / "model", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"], "a pooler that no head reads is left out"
    written = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert written["model_max_length"] == 41
    assert hf.config.architectures == [case.partition(",")[0]]
    close(our_outputs(model, padded_batch), hf_outputs(hf.eval(), padded_batch), SIMPLE)


def test_transformers_loads_an_encoder_without_heads(tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch) -> None:
    model = build_ours(())
    save_model(tmp_path / "model", model, tokenizer, metadata={})
    hf, report = transformers.AutoModel.from_pretrained(tmp_path / "model", output_loading_info=True)
    assert type(hf) is transformers.BertModel
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    compare_states(model.encoder, hf.eval(), padded_batch, SIMPLE)


def compare_states(ours: nn.Module, hf: Any, batch: Batch, tolerance: float) -> None:
    with torch.no_grad():
        output, expected = ours(batch), hf(**hf_inputs(batch))
    real = batch.attention_mask
    torch.testing.assert_close(output.hidden_states[real], expected.last_hidden_state[real], rtol=0, atol=tolerance)
    torch.testing.assert_close(output.pooled, expected.pooler_output, rtol=0, atol=tolerance)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("case", list(HEADS))
def test_folders_of_transformers_load(tmp_path: Path, padded_batch: Batch, case: str, activation: str) -> None:
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
    hf = hf_class(case)(shape).eval()
    randomize(hf)
    hf.save_pretrained(tmp_path / "hf")
    ours = ModelFolder.open(tmp_path / "hf").load_model(lambda encoder: heads_of(encoder, HEADS[case])).eval()
    close(our_outputs(ours, padded_batch), hf_outputs(hf, padded_batch), SIMPLE)


@pytest.mark.parametrize("form", ["safetensors in parts", "torch", "torch in parts"])
def test_other_file_formats_of_transformers_load(tmp_path: Path, padded_batch: Batch, form: str) -> None:
    shape = transformers.BertConfig(
        vocab_size=99, hidden_size=28, num_hidden_layers=3, num_attention_heads=4, hidden_act="gelu_fast"
    )
    hf = transformers.BertForPreTraining(shape).eval()
    randomize(hf)
    hf.save_pretrained(tmp_path, max_shard_size="100KB" if form == "safetensors in parts" else "5GB")
    if form == "torch":
        (tmp_path / "model.safetensors").unlink()
        torch.save(hf.state_dict(), tmp_path / "pytorch_model.bin")
    elif form == "torch in parts":
        (tmp_path / "model.safetensors").unlink()
        state = hf.state_dict()
        files = {name: f"pytorch_model-0000{1 + place % 2}-of-00002.bin" for place, name in enumerate(state)}
        for file in set(files.values()):
            torch.save({name: tensor for name, tensor in state.items() if files[name] == file}, tmp_path / file)
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": files}))
    else:
        assert (tmp_path / "model.safetensors.index.json").exists()
    ours = ModelFolder.open(tmp_path).load_model(lambda encoder: heads_of(encoder, ("mlm", "nsp"))).eval()
    close(our_outputs(ours, padded_batch), hf_outputs(hf, padded_batch), SIMPLE)


def test_a_round_trip_is_bit_identical(tmp_path: Path, tokenizer: WordPiece) -> None:
    model = build_ours(("mlm", "nsp"))
    save_model(tmp_path / "ours", model, tokenizer, metadata={})
    transformers.BertForPreTraining.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "hf")
    back = ModelFolder.open(tmp_path / "hf").load_model(lambda encoder: heads_of(encoder, ("mlm", "nsp")))
    assert ModelFolder.open(tmp_path / "hf").config == ModelFolder.open(tmp_path / "ours").config
    for name, tensor in model.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor), name


def test_multiple_choice_agrees_in_both_directions(tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch) -> None:
    """Two examples of two choices: transformers has an axis of choices, here they are rows."""
    batch = replace(padded_batch, rows_per_feature=torch.tensor([2, 2])).with_labels(choice=torch.tensor([1, 0]))
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=28, num_layers=3, num_heads=4, num_segments=3))
    model = Model(encoder, {"choice": MultipleChoice(encoder.hidden_size)}).eval()
    randomize(model)
    save_model(tmp_path / "ours", model, tokenizer, metadata={})
    hf = transformers.AutoModelForMultipleChoice.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        hf.classifier.bias.fill_(0.3)
    hf.save_pretrained(tmp_path / "hf")
    back = (
        ModelFolder.open(tmp_path / "hf")
        .load_model(lambda encoder: {"choice": MultipleChoice(encoder.hidden_size)})
        .eval()
    )
    inputs = {name: each.view(2, 2, -1) for name, each in hf_inputs(batch).items()}
    with torch.no_grad():
        expected = hf(**inputs, labels=batch.labels["choice"])
        ours = model(batch)["choice"]["logits"]
        outputs = back(batch)
        term = back.loss(outputs, batch)["choice"]
    torch.testing.assert_close(ours + 0.3, expected.logits, rtol=0, atol=SIMPLE)
    torch.testing.assert_close(outputs["choice"]["logits"], expected.logits, rtol=0, atol=SIMPLE)
    torch.testing.assert_close(term.sum / term.count, expected.loss, rtol=0, atol=SIMPLE)


def test_labels_and_tokenizer_are_exchanged_in_both_directions(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_model(tmp_path / "ours", build_ours(("class",)), tokenizer, metadata={"task": TASKS["class"].record()})
    hf = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    assert hf.config.id2label == {0: "dry", 1: "wet", 2: "odd"}
    assert hf.config.problem_type == "single_label_classification"
    hf_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert hf_tokenizer("a b", "c", add_special_tokens=False)["input_ids"] == tokenizer.encode("a b c").ids
    hf.save_pretrained(tmp_path / "hf")
    hf_tokenizer.save_pretrained(tmp_path / "hf")
    assert ModelFolder.open(tmp_path / "hf").metadata["labels"] == ["dry", "wet", "odd"]
    assert ModelFolder.open(tmp_path / "hf").tokenizer.encode("b z a").ids == tokenizer.encode("b z a").ids


def test_a_head_that_transformers_lacks_leaves_it_the_encoder(
    tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch
) -> None:
    """And nothing that its own classifier could take for its weights."""
    task = replace(TASKS["class"], pooling="mean")
    ours = build_ours(())
    model = Model(ours.encoder, task.objectives(ours.encoder)).eval()
    save_model(tmp_path / "ours", model, tokenizer, metadata={"task": task.record()})
    hf, report = transformers.AutoModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert type(hf).__name__ == "BertModel"
    assert not report["missing_keys"]
    compare_states(model.encoder, hf.eval(), padded_batch, SIMPLE)
    _, report = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert set(report["missing_keys"]) == {"classifier.weight", "classifier.bias"}


def batch_of(sentences: list[str], tokenizer: Tokenizer) -> Batch:
    features = [assemble(tokenizer, sentence, max_length=64) for sentence in sentences]
    return collate(features, pad_id=tokenizer.pad_id)


def test_real_weights_on_real_sentences(minilm: Path) -> None:
    """Six layers of a published model, from text to hidden states, each side with its own tokenizer."""
    tokenizer = ModelFolder.open(minilm).tokenizer
    batch = batch_of(SENTENCES, tokenizer)
    hf = transformers.BertModel.from_pretrained(minilm).eval()
    hf_tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    hf_batch = hf_tokenizer(SENTENCES, padding=True, return_tensors="pt")
    assert torch.equal(hf_batch["input_ids"], batch.input_ids)
    compare_states(ModelFolder.open(minilm).load_encoder().eval(), hf, batch, COMPOSITE)


def test_real_weights_are_bit_identical_after_saving(tmp_path: Path, minilm: Path) -> None:
    encoder = ModelFolder.open(minilm).load_encoder()
    save_model(tmp_path / "model", Model(encoder, {}), ModelFolder.open(minilm).tokenizer, metadata={})
    hf = transformers.BertModel.from_pretrained(minilm).state_dict()
    for name, tensor in transformers.BertModel.from_pretrained(tmp_path / "model").state_dict().items():
        assert torch.equal(tensor, hf[name]), name


def test_multi_label_predictions_and_loss_agree(tmp_path: Path, tokenizer: WordPiece, padded_batch: Batch) -> None:
    """A model of transformers is loaded with our task, and both losses are compared."""
    labels = torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1]])
    model = build_ours(("labels",))
    save_model(tmp_path / "ours", model, tokenizer, metadata={"task": TASKS["labels"].record()})
    hf = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    assert hf.config.problem_type == "multi_label_classification"
    batch = padded_batch.with_labels(labels=labels)
    with torch.no_grad():
        term = model.loss(model(batch), batch)["labels"]
        expected = hf(**hf_inputs(batch), labels=labels.float()).loss
    torch.testing.assert_close(term.sum / term.count, expected, rtol=0, atol=SIMPLE)
    hf.save_pretrained(tmp_path / "hf")
    tokenizer.save(tmp_path / "hf")
    task = load(tmp_path / "hf").task
    ours = ModelFolder.open(tmp_path / "hf").load_model(task.objectives)
    (prediction,) = predict(ours, task, [TextExample("1", "a b c")], tokenizer, precision="float32")
    inputs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")("a b c", return_tensors="pt")
    with torch.no_grad():
        shares = hf(**inputs).logits[0].sigmoid().tolist()
    assert list(prediction.scores.values()) == pytest.approx(shares, abs=SIMPLE)
    assert prediction.label == tuple(name for name, share in prediction.scores.items() if share >= 0.5)
