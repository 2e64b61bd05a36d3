from __future__ import annotations

import torch

from bertkit.batch import Batch
from bertkit.contracts import EncoderConfig, LayerStack, Penalized, Stateful, TokenEmbedding
from bertkit.encoders import bert, elmo, esim, tagger
from bertkit.objectives.nsp import NextSentencePrediction


def test_optional_abilities_of_encoders_are_recognised() -> None:
    abilities = (TokenEmbedding, LayerStack, Stateful, Penalized)
    found = {
        module.SPEC.title: [ability for ability in abilities if isinstance(module.tiny(), ability)]
        for module in (bert, elmo, esim, tagger)
    }
    assert found == {
        "BERT": [TokenEmbedding, LayerStack],
        "ELMo": [Stateful],
        "ESIM": [Penalized],
        "ELMo's tagger": [Penalized],
    }


def test_a_configuration_is_any_dataclass() -> None:
    assert isinstance(bert.BertConfig(vocab_size=99), EncoderConfig)
    assert not isinstance({"vocab_size": 99}, EncoderConfig)


def test_labels_are_counted_without_a_forward_pass(padded_batch: Batch) -> None:
    batch = padded_batch.with_labels(nsp=torch.tensor([0, -100, 1, 0]))
    assert NextSentencePrediction(12).counts(batch) == {"nsp": 3}
