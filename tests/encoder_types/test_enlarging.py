"""A larger network has the weights of the smaller one."""

from __future__ import annotations

import torch

from bertkit.encoder_types.enlarging import enlarge
from bertkit.encoders.gpt import tiny


def test_an_enlarged_encoder_keeps_its_weights() -> None:
    old = tiny()
    new = enlarge(old, vocab_size=old.config.vocab_size + 7)
    assert len(new.embeddings.word.weight) == len(old.embeddings.word.weight) + 7
    assert all(torch.equal(new.state_dict()[name][: len(weight)], weight) for name, weight in old.state_dict().items())
