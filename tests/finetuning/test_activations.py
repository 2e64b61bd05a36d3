"""A cached encoder computes every row once, and returns what the encoder itself returns."""

from __future__ import annotations

import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bertkit.batch import Batch, EncoderOutput
from bertkit.contracts import Encoder
from bertkit.encoders.bert import tiny as bert
from bertkit.encoders.elmo import tiny as elmo
from bertkit.errors import BertkitError
from bertkit.finetuning.activations import ActivationCache, CachedEncoder, cache_activations
from bertkit.model import Model
from bertkit.nn.mixture import LayerMixture
from bertkit.objectives.feature_tagging import FeatureTagging


class Counting(Encoder):
    """Counts the rows that it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = bert().requires_grad_(False).eval()
        self.config = self.inner.config
        self.hidden_size, self.num_layers = self.inner.hidden_size, self.inner.num_layers
        self.rows = 0

    def forward(
        self, batch: Batch, positions: torch.Tensor | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        self.rows += len(batch)
        output: EncoderOutput = self.inner(batch, positions, output_hidden_states=output_hidden_states)
        return output


def take(batch: Batch, rows: list[int], width: int = 13) -> Batch:
    ids, segments, mask = (each[rows, :width] for each in (batch.input_ids, batch.segment_ids, batch.attention_mask))
    return Batch(ids, segments, mask, labels={})


def test_a_row_is_computed_once_in_whatever_batch_it_occurs(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = Counting()
    cached = CachedEncoder(encoder, ActivationCache(tmp_path))
    cached(take(padded_batch, [0, 1, 2]))
    assert encoder.rows == 3
    cached(take(padded_batch, [2, 1, 3]))
    assert encoder.rows == 4
    cached(take(padded_batch, [3, 1], width=7))
    assert encoder.rows == 4


def test_threads_read_and_write_their_own_rows(tmp_path: Path) -> None:
    """Without a lock 24 of 20,000 rows that two threads read were wrong."""
    cache = ActivationCache(tmp_path)
    rows = {bytes([number]): np.full((3, 500), number, np.float16) for number in range(200)}

    def use(key: bytes) -> bool:
        cache.write(key, rows[key])
        return all(np.array_equal(cache.read(key), rows[key]) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, rows))


def test_cached_states_equal_those_of_the_encoder(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = Counting()
    cached = CachedEncoder(encoder, ActivationCache(tmp_path))
    expected = encoder.inner(padded_batch, output_hidden_states=True).layers
    real = padded_batch.attention_mask
    for _ in range(2):
        found = cached(padded_batch).layers
        assert len(found) == len(expected) == 4
        for states, reference in zip(found, expected, strict=True):
            torch.testing.assert_close(states[real], reference[real], rtol=1e-3, atol=1e-3)
    assert encoder.rows == 8 - 4


def test_states_are_float32_whatever_the_precision_of_the_training(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = Counting()
    expected = encoder.inner(padded_batch).hidden_states[padded_batch.attention_mask].half().float()
    with torch.autocast("cpu", torch.bfloat16):
        found = CachedEncoder(encoder, ActivationCache(tmp_path))(padded_batch).hidden_states
    torch.testing.assert_close(found[padded_batch.attention_mask], expected, rtol=0, atol=1e-6)


def test_states_are_cached_separately_for_every_set_of_positions(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = Counting()
    cached = CachedEncoder(encoder, ActivationCache(tmp_path))
    positions = padded_batch.attention_mask & (torch.arange(13) % 3 == 1)
    layers = cached(padded_batch, positions).layers
    assert layers[2][positions].ne(0).any(dim=1).all()
    assert not layers[2][~positions].any()
    assert cached(padded_batch).layers[2][padded_batch.attention_mask].ne(0).any(dim=1).all()


def test_words_of_characters_are_cached_too(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = elmo().requires_grad_(False).eval()
    cached = CachedEncoder(encoder, ActivationCache(tmp_path))
    spelled = replace(padded_batch, input_ids=padded_batch.input_ids.unsqueeze(2) * torch.arange(1, 8) % 101)
    other = replace(spelled, input_ids=spelled.input_ids.flip(2))
    for batch in (spelled, other, spelled):
        expected, real = encoder(batch).hidden_states, batch.attention_mask
        torch.testing.assert_close(cached(batch).hidden_states[real], expected[real], rtol=1e-3, atol=1e-3)


def test_heads_learn_on_cached_states_and_the_encoder_does_not_change(tmp_path: Path, padded_batch: Batch) -> None:
    encoder = bert()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    head = FeatureTagging(LayerMixture("sum-last-four", encoder.num_layers, encoder.hidden_size), 5, width=14)
    model = Model(encoder, {"tags": head})
    learner = cache_activations(model, ActivationCache(tmp_path)).train()
    batch = padded_batch.with_labels(word_tags=padded_batch.input_ids % 5)
    loss = learner.loss(learner(batch), batch)["word_tags"].sum
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is not None for weight in head.parameters())
    assert not encoder.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    learner.eval()
    model.eval()
    with torch.no_grad():
        from_cache, computed = (each(batch)["tags"]["logits"] for each in (learner, model))
    torch.testing.assert_close(from_cache, computed, rtol=1e-3, atol=1e-3)


def test_a_full_disk_is_an_error_of_one_line(tmp_path: Path, padded_batch: Batch) -> None:
    cached = CachedEncoder(Counting(), ActivationCache(tmp_path))
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(BertkitError, match="File too large"):
            cached(padded_batch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_row_without_selected_tokens_is_cached_too(tmp_path: Path, padded_batch: Batch) -> None:
    cached = CachedEncoder(Counting(), ActivationCache(tmp_path))
    batch = take(padded_batch, [0, 1])
    positions = batch.attention_mask.clone()
    positions[1] = False
    for _ in range(2):
        layers = torch.stack(cached(batch, positions).layers)
        assert not layers[:, 1].any()
        assert layers[:, 0].any()
