from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from bertkit.batch import Batch
from bertkit.contracts import (
    EncoderConfig,
    LayerStack,
    Penalized,
    Stateful,
    has_prediction_head,
    has_token_embedding,
)
from bertkit.encoders import bert, elmo, esim, modernbert, tagger
from bertkit.objectives.nsp import NextSentencePrediction


def test_optional_abilities_of_encoders_are_recognised() -> None:
    abilities = (LayerStack, Stateful, Penalized)
    found = {
        module.SPEC.title: [ability for ability in abilities if isinstance(module.tiny(), ability)]
        for module in (bert, elmo, esim, tagger)
    }
    assert found == {
        "BERT": [LayerStack],
        "ELMo": [Stateful],
        "ESIM": [Penalized],
        "ELMo's tagger": [Penalized],
    }


def test_layers_that_objectives_share_are_found_among_submodules_and_properties() -> None:
    """isinstance with a run-time protocol finds only the properties, from Python 3.12 on."""
    shared: dict[str, Callable[[object], bool]] = {
        "token_embedding": has_token_embedding,
        "prediction_head": has_prediction_head,
    }
    found = {
        module.SPEC.title: [name for name, check in shared.items() if check(module.tiny())]
        for module in (bert, esim, modernbert)
    }
    assert found == {"BERT": ["token_embedding"], "ESIM": [], "ModernBERT": ["token_embedding", "prediction_head"]}
    encoder = esim.tiny()
    encoder.token_embedding = nn.Embedding(5, 3)
    assert has_token_embedding(encoder)


def test_a_configuration_is_any_dataclass() -> None:
    assert isinstance(bert.BertConfig(vocab_size=99), EncoderConfig)
    assert not isinstance({"vocab_size": 99}, EncoderConfig)


def test_labels_are_counted_without_a_forward_pass(padded_batch: Batch) -> None:
    batch = padded_batch.with_labels(nsp=torch.tensor([0, -100, 1, 0]))
    assert NextSentencePrediction(12).counts(batch) == {"nsp": 3}
