from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.checkpoint.saved_models import CLASSES, save

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import READABLE_ELSEWHERE, save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.text.wordpiece import WordPiece


def test_config_names_the_classes(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "dry", "1": "wet", "2": "odd"}
    assert config["label2id"] == {"dry": 0, "wet": 1, "odd": 2}
    assert config["problem_type"] == "single_label_classification"


@pytest.mark.parametrize(
    ("heads", "readable_elsewhere", "architecture"),
    [
        ("classes", "model", "BertForSequenceClassification"),
        ("none", "model", "BertModel"),
        ("mean", "encoder", "BertModel"),
    ],
)
def test_the_folder_says_what_other_libraries_read(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, heads: str, readable_elsewhere: str, architecture: str
) -> None:
    save(tmp_path / "model", encoder, tokenizer, heads)
    assert ModelFolder.open(tmp_path).metadata[READABLE_ELSEWHERE] == readable_elsewhere
    assert json.loads((tmp_path / "model" / "config.json").read_text())["architectures"] == [architecture]


@pytest.mark.parametrize(
    ("network", "heads", "readable_elsewhere", "architecture"),
    [
        ({"causal": True}, "classes", "encoder", "BertModel"),  # theirs reads [CLS], which sees no other token
        ({"causal": True}, "none", "model", "BertModel"),
        ({"lstm_layers": 1}, "classes", "nothing", "BertForSequenceClassification"),
    ],
)
def test_other_libraries_do_not_read_what_they_compute_in_another_way(
    tmp_path: Path,
    encoder: Bert,
    tokenizer: WordPiece,
    network: dict[str, Any],
    heads: str,
    readable_elsewhere: str,
    architecture: str,
) -> None:
    save(tmp_path / "model", Bert(replace(encoder.config, **network)), tokenizer, heads)
    assert ModelFolder.open(tmp_path).metadata[READABLE_ELSEWHERE] == readable_elsewhere
    assert json.loads((tmp_path / "model" / "config.json").read_text())["architectures"] == [architecture]


def test_a_network_with_one_segment_gets_no_segment_ids(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    inputs = {}
    for segments in (1, 2):
        save(tmp_path / str(segments), Bert(replace(encoder.config, num_segments=segments)), tokenizer)
        found = json.loads((tmp_path / str(segments) / "tokenizer_config.json").read_text())["model_input_names"]
        inputs[segments] = "token_type_ids" in found
    assert inputs == {1: False, 2: True}


def test_a_head_that_only_bertkit_has_does_not_hide_the_others(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    class Own(SequenceClassification):
        label = "own"

    heads = {"class": SequenceClassification(encoder.hidden_size, 3), "own": Own(encoder.hidden_size, 3)}
    save_model(tmp_path / "model", Model(encoder, heads), tokenizer, metadata={"kind": "finetune"})
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert ModelFolder.open(tmp_path / "model").metadata[READABLE_ELSEWHERE] == "encoder"


def test_classes_without_names_are_numbered(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save_model(tmp_path / "model", Model(encoder, CLASSES.objectives(encoder)), tokenizer, metadata={})
    assert json.loads((tmp_path / "model" / "config.json").read_text())["label2id"] == {
        "LABEL_0": 0,
        "LABEL_1": 1,
        "LABEL_2": 2,
    }


def test_sentence_transformers_applies_no_sigmoid_to_a_number(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    save(tmp_path / "model", encoder, tokenizer, "number")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["problem_type"] == "regression"
    assert len(config["id2label"]) == 1
    assert config["sentence_transformers"]["activation_fn"] == "torch.nn.modules.linear.Identity"


def test_a_model_replaces_another(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer, "pretraining")
    (tmp_path / "model" / "notes.txt").write_text("from before")
    save(tmp_path / "model", encoder, tokenizer, "classes")
    assert ModelFolder.open(tmp_path).metadata["kind"] == "finetune"
    assert not (tmp_path / "model" / "notes.txt").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name != "vocabulary"] == ["model"]


def test_a_folder_without_a_model_is_not_replaced(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(BertkitError, match="letters is not empty and holds no model"):
        save(tmp_path / "letters", encoder, tokenizer)
    assert (tmp_path / "letters" / "dear.txt").read_text() == "Dear"
