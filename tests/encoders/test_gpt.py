from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bertkit.batch import Batch
from bertkit.encoders.gpt import HF_NAMES, Gpt, GptConfig, size, tiny
from bertkit.errors import BertkitError


def test_the_published_size_has_the_published_shapes(data_folder: Path) -> None:
    """The list of shapes that OpenAI published with the weights: positions, words, and twelve tensors per layer."""
    published = json.loads((data_folder / "vocab" / "gpt1-bpe" / "params_shapes.json").read_text(encoding="utf-8"))
    with torch.device("meta"):
        encoder = Gpt(size("base", vocab_size=40_478))
    # OpenAI's matrices are transposed and have a leading axis of length one.
    expected = Counter(tuple(sorted(length for length in shape if length > 1)) for shape in published)
    assert Counter(tuple(sorted(weight.shape)) for weight in encoder.parameters()) == expected
    assert sum(weight.numel() for weight in encoder.parameters()) == 116_534_784


def test_no_state_depends_on_a_later_token(padded_batch: Batch) -> None:
    encoder, seen = tiny().eval(), list[Tensor]()
    encoder.embeddings.register_forward_hook(lambda module, inputs, states: seen.append(states))
    states = encoder(padded_batch).hidden_states
    for row, reader in padded_batch.attention_mask.nonzero().tolist():
        (gradient,) = torch.autograd.grad(states[row, reader].sin().sum(), seen, retain_graph=True)
        depends = gradient.abs().sum(dim=-1) > 0
        assert depends[row, : reader + 1].all()
        assert int(depends.sum()) == reader + 1


def test_the_pooled_state_is_that_of_the_last_token(padded_batch: Batch) -> None:
    states = tiny().eval()(padded_batch)
    for row, last in enumerate((12, 6, 10, 1)):
        assert torch.equal(states.pooled[row], states.hidden_states[row, last])


def test_segments_are_ignored(padded_batch: Batch) -> None:
    encoder = tiny().eval()
    other = replace(padded_batch, segment_ids=1 - padded_batch.segment_ids)
    assert torch.equal(encoder(padded_batch).hidden_states, encoder(other).hidden_states)


def test_hidden_states_of_all_layers_are_returned_on_request(padded_batch: Batch) -> None:
    encoder = tiny()
    states = encoder(padded_batch, output_hidden_states=True)
    assert len(states.layers) == encoder.num_layers + 1
    assert states.layers[-1] is states.hidden_states


def test_rows_longer_than_the_positions_are_refused() -> None:
    ids = torch.full((2, 43), 7)
    batch = Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=ids > 0, labels={})
    with pytest.raises(BertkitError, match="rows of 43 tokens, but the model has 41 positions"):
        tiny()(batch)


def test_sizes_and_settings_are_checked() -> None:
    config = size("3/12/2", vocab_size=99, max_positions=37)
    assert (config.num_layers, config.hidden_size, config.num_heads) == (3, 12, 2)
    assert (config.intermediate_size, config.max_positions, config.layer_norm_eps) == (48, 37, 1e-5)
    with pytest.raises(BertkitError, match="There are: tiny, mini, small, medium, base, or layers/width/heads"):
        size("large", vocab_size=99)
    with pytest.raises(BertkitError, match=r'GPT has no setting "num_head".* Did you mean "num_heads"\?'):
        size("base", vocab_size=99, num_head=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 13}, "hidden_size 13 is not a multiple of num_heads 2"),
        ({"max_positions": 0}, "max_positions is 0; it must be from 1 to"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1"),
        ({"layer_norm_eps": 0.0}, "layer_norm_eps is 0.0; it must be above 0"),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    fields = {"vocab_size": 99, "hidden_size": 12, "num_heads": 2, **changes}
    with pytest.raises(BertkitError) as caught:
        GptConfig(**fields)
    assert message in str(caught.value)


def test_hugging_face_names_cover_every_weight_once() -> None:
    encoder = tiny()
    ours = [name.format(layer=layer) for name in HF_NAMES for layer in range(encoder.num_layers)]
    assert set(ours) == set(encoder.state_dict())
    hf_names = [name for names in HF_NAMES.values() for name in names]
    assert len(hf_names) == len(set(hf_names))
