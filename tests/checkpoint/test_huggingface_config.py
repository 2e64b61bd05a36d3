"""Hugging Face's ``config.json``: written, read, and refused if the network would be another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from transformers.activations import ACT2FN

from bertkit.checkpoint.huggingface_config import (
    architectures_from_hf,
    classes_to_hf,
    config_from_hf,
    config_to_hf,
    is_multi_label,
    labels_from_hf,
    number_to_hf,
)
from bertkit.encoder_types.transformer import ACTIVATION_NAMES
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.nn.activation import ACTIVATIONS


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_a_config_is_written_and_read(encoder: Bert, activation: str) -> None:
    config = replace(encoder.config, activation=activation)
    assert config_from_hf(json.loads(json.dumps(config_to_hf(config))), "config.json") == config


def test_absent_keys_of_a_config_have_their_defaults() -> None:
    assert config_from_hf({}, "config.json") == BertConfig(vocab_size=30522)
    assert config_from_hf({"hidden_act": "gelu_python", "pad_token_id": None}, "config.json").activation == "gelu"


@pytest.mark.parametrize("name", ACTIVATION_NAMES)
def test_activations_are_those_of_transformers(name: str) -> None:
    activation = config_from_hf({"hidden_act": name}, "config.json").activation
    states = torch.linspace(-7, 7, 99)
    torch.testing.assert_close(ACTIVATIONS[activation]()(states), ACT2FN[name](states), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("model_type", "gpt2", 'model_type is "gpt2"; bertkit reads "bert"'),
        ("position_embedding_type", "relative_key", "position_embedding_type"),
        ("is_decoder", "True", "Expected `bool`, got `str` - at `is_decoder`"),
        ("hidden_act", "silu", 'hidden_act is "silu"; bertkit supports gelu'),
        ("hidden_act", ["gelu"], "hidden_act"),
        ("num_hidden_layers", "12", "Expected `int`, got `str` - at `num_hidden_layers`"),
        ("hidden_size", -1, "hidden_size is -1; it must be from 1 to"),
        ("num_attention_heads", 5, "not a multiple"),
        ("hidden_dropout_prob", 1.5, "dropout is 1.5"),
        ("pad_token_id", 40_000, "pad_id is 40000"),
    ],
)
def test_an_unsupported_config_is_an_error(field: str, value: Any, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        config_from_hf({field: value}, "model/config.json")
    assert str(caught.value).startswith("model/config.json")
    assert str(caught.value).count("..") == 0
    assert caught.value.exit_code == 3


def test_two_keys_for_one_setting_must_agree() -> None:
    gpt = {"model_type": "openai-gpt", "resid_pdrop": 0.2, "embd_pdrop": 0.2}
    assert config_from_hf(gpt, "config.json").dropout == 0.2
    assert config_from_hf({**gpt, "resid_pdrop": 0, "embd_pdrop": 0.0}, "config.json").dropout == 0
    with pytest.raises(BertkitError, match=r"has resid_pdrop 0\.2 and embd_pdrop 0\.3; bertkit has one dropout for"):
        config_from_hf({**gpt, "embd_pdrop": 0.3}, "config.json")


@pytest.mark.parametrize("content", [[], "text", None, 3])
def test_a_config_must_be_an_object(content: object) -> None:
    with pytest.raises(BertkitError, match=r"config\.json is not the configuration of a model"):
        config_from_hf(content, "config.json")


def test_labels_are_written_and_read() -> None:
    content = classes_to_hf(["dry", "wet"], 2)
    assert content["label2id"] == {"dry": 0, "wet": 1}
    assert content["problem_type"] == "single_label_classification"
    assert labels_from_hf(json.loads(json.dumps(content)), "config.json") == ["dry", "wet"]
    assert classes_to_hf(None, 2, several=True)["problem_type"] == "multi_label_classification"
    assert labels_from_hf(classes_to_hf(None, 2), "config.json") == ["LABEL_0", "LABEL_1"]


def test_a_config_without_labels_has_none() -> None:
    assert labels_from_hf({}, "config.json") == []
    assert labels_from_hf({"id2label": None}, "config.json") == []


@pytest.mark.parametrize("count", [1, 3])
def test_a_config_with_the_number_of_classes_alone_numbers_them(count: int) -> None:
    theirs = transformers.BertConfig.from_dict({"num_labels": count})
    assert labels_from_hf({"num_labels": count}, "config.json") == list(theirs.id2label.values())
    assert labels_from_hf({"num_labels": count, "id2label": {"0": "dry"}}, "config.json") == ["dry"]


@pytest.mark.parametrize("count", [0, -1, "3", 1e9, 10**9])
def test_a_number_of_classes_is_a_whole_number(count: object) -> None:
    with pytest.raises(BertkitError, match=r"^config\.json: num_labels is .*; it must be a whole number from 1 to"):
        labels_from_hf({"num_labels": count}, "config.json")


@pytest.mark.parametrize(
    "labels", [{"1": "dry"}, ["dry"], {"zero": "dry"}, 3, {"0": None, "1": "dry"}, {"0": ["dry"]}, {"0": True}]
)
def test_labels_that_are_not_numbered_from_0_are_an_error(labels: object) -> None:
    with pytest.raises(BertkitError, match="id2label must map the numbers from 0 on to names"):
        labels_from_hf({"id2label": labels}, "config.json")


def test_two_classes_of_one_name_are_an_error() -> None:
    """Answers are stored by the names of the classes: one of the two would be lost."""
    assert labels_from_hf({"id2label": {"0": 0, "1": 1}}, "config.json") == ["0", "1"]
    with pytest.raises(
        BertkitError, match=r'^config\.json: id2label has the name "dry" twice\. Give each class its own'
    ):
        labels_from_hf({"id2label": {"0": "dry", "1": "dry"}}, "config.json")


@pytest.mark.parametrize("names", ["BertForMaskedLM", [{}], [3], {"a": 1}])
def test_architectures_are_a_list_of_classes(names: object) -> None:
    assert architectures_from_hf({"architectures": ["BertModel"]}, "config.json") == ["BertModel"]
    assert architectures_from_hf({"architectures": None}, "config.json") == []
    with pytest.raises(BertkitError, match=r"^config\.json: architectures must be a list of classes, such as \["):
        architectures_from_hf({"architectures": names}, "config.json")


def test_the_kind_of_a_problem_is_one_that_transformers_knows() -> None:
    assert is_multi_label({"problem_type": "multi_label_classification"}, ["dry", "wet"], "config.json")
    for problem, labels in ((None, ["dry", "wet"]), ("single_label_classification", ["dry"]), ("regression", ["a"])):
        assert not is_multi_label({"problem_type": problem}, labels, "config.json")
    with pytest.raises(
        BertkitError, match=r"^config\.json: problem_type is \"ranking\"; bertkit reads \"regression\", "
    ):
        is_multi_label({"problem_type": "ranking"}, ["dry"], "config.json")
    with pytest.raises(BertkitError, match="problem_type is regression with 2 outputs; bertkit reads one number"):
        is_multi_label({"problem_type": "regression"}, ["dry", "wet"], "config.json")


def test_a_number_is_a_regression_with_the_identity_as_activation() -> None:
    content = number_to_hf()
    assert content["problem_type"] == "regression"
    assert content["sentence_transformers"] == {
        "activation_fn": "torch.nn.modules.linear.Identity",
        "version": "6.2.0",
    }
