"""The class of a folder without ``architectures``, told by the names of its weights: those of transformers' classes."""

from __future__ import annotations

import pytest
import transformers

from bertkit.checkpoint.head_classes import possible_classes
from bertkit.encoders import bert, modernbert, roberta

SPECS = {"Bert": bert.SPEC, "Roberta": roberta.SPEC, "ModernBert": modernbert.SPEC}
SIZES = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 13, "vocab_size": 37}


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("BertForQuestionAnswering", 2, ["BertForQuestionAnswering"]),
        ("BertForSequenceClassification", 3, ["BertForSequenceClassification"]),
        ("BertForSequenceClassification", 1, ["BertForSequenceClassification", "BertForMultipleChoice"]),
        ("BertForMultipleChoice", 1, ["BertForSequenceClassification", "BertForMultipleChoice"]),
        ("BertForTokenClassification", 3, ["BertForTokenClassification"]),
        ("BertForMaskedLM", 2, []),
        ("RobertaForSequenceClassification", 3, ["RobertaForSequenceClassification"]),
        ("RobertaForTokenClassification", 3, ["RobertaForTokenClassification"]),
        ("RobertaForMultipleChoice", 1, ["RobertaForMultipleChoice"]),
        (
            "ModernBertForTokenClassification",
            3,
            ["ModernBertForSequenceClassification", "ModernBertForTokenClassification"],
        ),
    ],
)
def test_classes_of_transformers_are_told_by_their_weights(name: str, labels: int, expected: list[str]) -> None:
    family = name.partition("For")[0]
    ids = {"pad_token_id": 1} | dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 2)
    config = getattr(transformers, f"{family}Config")(**SIZES, **ids, num_labels=labels)
    weights = getattr(transformers, name)(config).state_dict()
    assert possible_classes(SPECS[family].huggingface, weights, ["a", "b", "c"][:labels]) == expected
    if "classifier.weight" in weights:
        tags = ["O", "B-PER", "I-PER"]
        assert possible_classes(SPECS[family].huggingface, weights, tags) == [f"{family}ForTokenClassification"]
