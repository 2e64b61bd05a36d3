from __future__ import annotations

import torch

from bertkit.batch import WORD_STARTS, Batch, EncoderOutput
from bertkit.nn.mixture import LayerMixture
from bertkit.objectives.feature_tagging import FeatureTagging


def test_logits_are_zero_on_tokens_that_do_not_begin_a_word(padded_batch: Batch) -> None:
    starts = padded_batch.attention_mask & (torch.arange(13) % 3 == 1)
    batch = padded_batch.with_labels(**{WORD_STARTS: starts.long()})
    layers = tuple(torch.randn(4, 13, 12) for _ in range(3))
    head = FeatureTagging(LayerMixture("sum-all", 2, 12), 5, width=14).eval()
    logits = head(EncoderOutput(hidden_states=layers[-1], pooled=layers[-1][:, 0], layers=layers), batch)["logits"]
    assert logits.shape == (4, 13, 5)
    assert not logits[~starts].any()
    assert logits[starts].ne(0).any(dim=1).all()
    assert torch.equal(head.reads(batch), starts)
