"""Encoders without weights, and larger ones."""

from __future__ import annotations

import subprocess
import sys

import torch

from bertkit.encoder_types.building import copy_first_rows, enlarge, sketch_encoder
from bertkit.encoders.gpt import SPEC, tiny


def test_an_enlarged_encoder_keeps_its_weights() -> None:
    old = tiny()
    new = enlarge(old, vocab_size=old.config.vocab_size + 7)
    assert len(new.embeddings.word.weight) == len(old.embeddings.word.weight) + 7
    assert all(torch.equal(new.state_dict()[name][: len(weight)], weight) for name, weight in old.state_dict().items())


def test_a_weight_that_is_a_single_number_is_copied() -> None:
    table, scale = torch.zeros(3, 2), torch.zeros(())
    copy_first_rows(table, torch.ones(2, 2))
    copy_first_rows(scale, torch.tensor(7.0))
    assert table.sum(dim=1).tolist() == [2, 2, 0]
    assert scale.item() == 7


def test_a_sketch_has_the_shapes_and_no_weights() -> None:
    real = tiny()
    sketch = sketch_encoder(SPEC, real.config)
    assert all(weight.is_meta for weight in sketch.parameters())
    assert [each.shape for each in sketch.parameters()] == [each.shape for each in real.parameters()]


def test_a_sketch_is_built_without_loading_the_compiler_of_torch() -> None:
    """That takes a second, and more on a slow disk: every pre-training is sketched before it begins."""
    program = """
import sys
from bertkit.encoder_types.building import without_weights
from bertkit.encoders import elmo, gpt
with without_weights():
    gpt.tiny(), elmo.tiny()
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
