"""A whole model with all heads of its folder, from one folder to another."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders import bert, modernbert
from bertkit.encoders.bert import Bert
from bertkit.encoders.bilstm_attention import tiny
from bertkit.encoders.modernbert import ModernBert
from bertkit.errors import BertkitError
from bertkit.inference.conversion import convert, convert_to_sentence_transformers, explain_unit, load_whole_model
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.named_objectives import build_objectives
from bertkit.task_types import RegressionTask
from bertkit.task_types.regression import Numbers
from bertkit.text.wordpiece import WordPiece, train
from bertkit.text.words import train as train_words

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

SIZES = {"hidden_size": 28, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 37}


@pytest.fixture
def tokenizer() -> WordPiece:
    return train(["river stone early garden"] * 7, vocab_size=67)


def save_hf(folder: Path, name: str, tokenizer: WordPiece, **changes: Any) -> Any:
    """A model of transformers with random weights in ``folder``, and the tokenizer."""
    shape = transformers.BertConfig(vocab_size=tokenizer.vocab_size, max_position_embeddings=41, **SIZES, **changes)
    model = getattr(transformers, name)(shape).eval()
    model.save_pretrained(folder)
    tokenizer.save(folder)
    return model


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("BertModel", ()),
        ("BertForPreTraining", ("mlm", "nsp")),
        ("BertForMaskedLM", ("mlm",)),
        ("BertForNextSentencePrediction", ("nsp",)),
        ("BertForSequenceClassification", ("class",)),
        ("BertForTokenClassification", ("tags",)),
        ("BertForQuestionAnswering", ("span",)),
        ("BertForMultipleChoice", ("choice",)),
    ],
)
def test_every_head_of_transformers_comes_and_goes(
    tmp_path: Path, tokenizer: WordPiece, name: str, heads: tuple[str, ...]
) -> None:
    """What is imported, and then read by transformers again, has every weight of the original."""
    labels = {0: "dry", 1: "wet", 2: "odd"} if heads in (("class",), ("tags",)) else None
    original = save_hf(tmp_path / "hf", name, tokenizer, **({"id2label": labels} if labels else {}))
    found = convert(ModelFolder.open(tmp_path / "hf"), tmp_path / "ours")
    assert (found.heads, found.left_out) == (heads, ())
    back, report = getattr(transformers, name).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert (report["missing_keys"], report["unexpected_keys"]) == (set(), set())
    for key, weight in original.state_dict().items():
        assert torch.equal(back.state_dict()[key], weight), key
    assert back.config.architectures == [name]
    if labels:
        assert back.config.id2label == labels
        assert load(tmp_path / "ours").task.record()["labels"] == list(labels.values())


def test_an_imported_classifier_predicts_as_before(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_hf(tmp_path / "hf", "BertForSequenceClassification", tokenizer)
    convert(ModelFolder.open(tmp_path / "hf"), tmp_path / "ours")
    assert load(tmp_path / "ours").classify("river stone") == load(tmp_path / "hf").classify("river stone")


def test_tensors_that_are_unknown_here_are_listed(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_hf(tmp_path / "hf", "BertModel", tokenizer)
    weights = tmp_path / "hf" / "model.safetensors"
    save_file({**load_file(weights), "my_head.weight": torch.ones(3)}, weights, metadata={"format": "pt"})
    found = convert(ModelFolder.open(tmp_path / "hf"), tmp_path / "ours")
    assert found.left_out == ("my_head.weight",)
    assert "left out, unknown here: my_head.weight" in found.lines()


def test_heads_that_vectors_do_not_need_are_not_called_unknown(tmp_path: Path, tokenizer: WordPiece) -> None:
    for name, heads in (("BertForPreTraining", "mlm, nsp"), ("BertModel", "")):
        save_hf(tmp_path / name, name, tokenizer)
        weights = tmp_path / name / "model.safetensors"
        save_file({**load_file(weights), "my_head.weight": torch.ones(3)}, weights, metadata={"format": "pt"})
        found = convert_to_sentence_transformers(ModelFolder.open(tmp_path / name), tmp_path / f"{name}-out")
        assert (found.heads, found.left_out) == ((), ("my_head.weight",))
        notes = [f"left out: the heads for {heads}, which vectors do not need"] if heads else []
        assert found.lines()[1:] == [*notes, "left out, unknown here: my_head.weight"]


def test_the_origin_is_recorded(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_hf(tmp_path / "hf", "BertModel", tokenizer)
    convert(ModelFolder.open(tmp_path / "hf"), tmp_path / "ours")
    content = json.loads((tmp_path / "ours" / "bertkit.json").read_text())
    assert (content["kind"], content["from"]) == ("imported", str(tmp_path / "hf"))


def test_an_encoder_that_only_bertkit_has_is_not_converted(tmp_path: Path) -> None:
    words = train_words(["river stone"] * 7, vocab_size=67)
    save_model(tmp_path / "model", Model(tiny(), {}), words, metadata={})
    with pytest.raises(BertkitError, match="which only bertkit has"):
        convert(ModelFolder.open(tmp_path / "model"), tmp_path / "out")


def test_a_bert_with_a_bilstm_is_not_converted(tmp_path: Path, tokenizer: WordPiece) -> None:
    encoder = Bert(replace(bert.tiny().config, vocab_size=tokenizer.vocab_size, lstm_layers=1))
    save_model(tmp_path / "model", Model(encoder, {}), tokenizer, metadata={})
    with pytest.raises(BertkitError, match="is BERT with a BiLSTM on top, which only bertkit has"):
        convert(ModelFolder.open(tmp_path / "model"), tmp_path / "out")


def test_the_heads_of_the_recorded_objectives_are_converted(tmp_path: Path, tokenizer: WordPiece) -> None:
    """A ModernBERT has no next-sentence head by default."""
    encoder = ModernBert(replace(modernbert.tiny().config, vocab_size=tokenizer.vocab_size))
    names = ["mlm", "nsp"]
    model = Model(encoder, build_objectives(names, encoder))
    save_model(tmp_path / "model", model, tokenizer, metadata={"kind": "pretrain", "objectives": names})
    found = convert(ModelFolder.open(tmp_path / "model"), tmp_path / "out")
    assert (found.heads, found.left_out) == (("mlm", "nsp"), ())


def test_a_whole_model_of_a_run_has_the_heads_of_its_task(workspace: Path) -> None:
    assert list(load_whole_model(ModelFolder.open(workspace / "tuned")).objectives) == ["class"]


def test_a_unit_that_other_libraries_do_not_know_is_stated(tmp_path: Path, tokenizer: WordPiece) -> None:
    """Times in seconds since 1970 stay in the unit of the training, as float32 cannot tell them apart."""
    save_hf(tmp_path / "hf", "BertForPreTraining", tokenizer)
    table = tmp_path / "times.csv"
    table.write_text("text,seen\n" + "".join(f"word {row},{1_700_000_000 + row}\n" for row in range(36)))
    options: dict[str, Any] = {"label": "seen", "kind": "number", "epochs": 1, "limit": 13, "progress": "quiet"}
    options["set"] = ["task.pooling=cls"]
    bertkit.finetune(table, model=tmp_path / "hf", output=tmp_path / "run", **options)
    folder = ModelFolder.open(tmp_path / "run")
    task = task_of_folder(folder)
    assert isinstance(task, RegressionTask)
    stated = f"multiply them by {task.numbers.unit!r} and add {task.numbers.origin!r} for those of the file"
    assert any(note.endswith(stated) for note in convert(folder, tmp_path / "out").notes)
    assert f"{stated}.\n" in (folder.path / "README.md").read_text(encoding="utf-8")
    assert explain_unit(replace(task, numbers=Numbers())) == []
    options["set"] = ["task.pooling=mean"]  # a head that other libraries do not read
    bertkit.finetune(table, model=tmp_path / "hf", output=tmp_path / "mean", **options)
    (note,) = convert(ModelFolder.open(tmp_path / "mean"), tmp_path / "mean-out").notes
    assert note.startswith("other libraries read only the encoder")


def test_the_name_of_the_only_label_is_kept(tmp_path: Path, tokenizer: WordPiece) -> None:
    save_hf(tmp_path / "hf", "BertForSequenceClassification", tokenizer, num_labels=1, id2label={0: "relevance"})
    convert(ModelFolder.open(tmp_path / "hf"), tmp_path / "ours")
    content = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert (content["id2label"], content["label2id"]) == ({"0": "relevance"}, {"relevance": 0})


def test_other_libraries_cut_texts_where_the_task_does(workspace: Path, tmp_path: Path) -> None:
    folder = ModelFolder.open(workspace / "tuned")
    folder.metadata["task"]["max_length"] = 17
    convert(folder, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["model_max_length"] == 17
