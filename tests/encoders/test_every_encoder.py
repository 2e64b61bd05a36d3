"""Tests of every encoder module; a new one is covered without an edit here."""

from __future__ import annotations

import importlib
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from bertkit.batch import Batch
from bertkit.checkpoint.huggingface_config import config_from_hf, config_to_hf
from bertkit.checkpoint.tensors import read_tensors, write_tensors
from bertkit.config.settings import Setting, apply
from bertkit.contracts import Encoder, LayerStack
from bertkit.encoder_types.architectures import find_encoder, find_spec, name_architecture
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.encoders import bert, gpt, roberta
from bertkit.lookup import list_modules
from bertkit.nn.init import fill_sinusoids
from bertkit.pretraining.defaults import architecture_defaults, default_pretraining_task, profile_settings
from bertkit.pretraining.record import PretrainRun

WITH_LSTM = "bert left to right with a BiLSTM"


@pytest.fixture(params=[*list_modules("encoders"), WITH_LSTM])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    if request.param == WITH_LSTM:
        return bert.Bert(replace(bert.tiny().config, causal=True, lstm_layers=2))
    built = importlib.import_module(f"bertkit.encoders.{request.param}").tiny()
    assert isinstance(built, Encoder)
    return built


@pytest.fixture
def padded_batch(encoder: Encoder, padded_batch: Batch) -> Batch:
    """The same batch in the encoder's input format: for a character encoder, characters derived from the token ids."""
    if encoder.word_length is None:
        return padded_batch
    letters = padded_batch.input_ids.unsqueeze(2) * torch.arange(1, encoder.word_length + 1) % 101
    return replace(padded_batch, input_ids=letters)


def test_shapes(encoder: Encoder, padded_batch: Batch) -> None:
    states = encoder(padded_batch)
    assert states.hidden_states.shape == (4, 13, encoder.hidden_size)
    assert states.pooled.shape == (4, encoder.hidden_size)


def test_gradients_reach_every_parameter(encoder: Encoder, padded_batch: Batch) -> None:
    states = encoder(padded_batch)
    # Cosines make every output matter differently; a plain sum after a LayerNorm has a zero gradient.
    outputs = (states.hidden_states, states.pooled)
    sum((each * torch.cos(torch.arange(each.numel())).view_as(each)).sum() for each in outputs).backward()
    trained = {name: weight for name, weight in encoder.named_parameters() if weight.requires_grad}
    unreached = [name for name, weight in trained.items() if weight.grad is None or not weight.grad.any()]
    assert unreached == []


def test_padding_does_not_change_the_states(encoder: Encoder, padded_batch: Batch) -> None:
    encoder.eval()
    wider = Batch(
        input_ids=torch.cat([padded_batch.input_ids, torch.zeros_like(padded_batch.input_ids[:, :6])], dim=1),
        segment_ids=F.pad(padded_batch.segment_ids, (0, 6)),
        attention_mask=F.pad(padded_batch.attention_mask, (0, 6)),
        labels={},
    )
    plain, padded = encoder(padded_batch), encoder(wider)
    real = padded_batch.attention_mask
    torch.testing.assert_close(padded.hidden_states[:, :13][real], plain.hidden_states[real], rtol=0, atol=1e-5)
    torch.testing.assert_close(padded.pooled, plain.pooled, rtol=0, atol=1e-5)


def test_the_ids_of_padding_are_ignored(encoder: Encoder, padded_batch: Batch) -> None:
    encoder.eval()
    real = padded_batch.attention_mask
    ids = padded_batch.input_ids.clone()
    ids[~real] = 57
    other = replace(padded_batch, input_ids=ids)
    assert torch.equal(encoder(other).hidden_states[real], encoder(padded_batch).hidden_states[real])


def test_rows_are_independent(encoder: Encoder, padded_batch: Batch) -> None:
    encoder.eval()
    alone = Batch(
        input_ids=padded_batch.input_ids[1:2, :7],
        segment_ids=padded_batch.segment_ids[1:2, :7],
        attention_mask=padded_batch.attention_mask[1:2, :7],
        labels={},
    )
    together = encoder(padded_batch).hidden_states[1:2, :7]
    torch.testing.assert_close(encoder(alone).hidden_states, together, rtol=0, atol=1e-5)


def test_states_at_some_positions_are_the_same_as_all_states(encoder: Encoder, padded_batch: Batch) -> None:
    encoder.eval()
    positions = torch.zeros_like(padded_batch.attention_mask)
    positions[0, 5] = positions[0, 9] = positions[2, 1] = positions[3, 1] = True
    everything, some = encoder(padded_batch), encoder(padded_batch, positions)
    assert some.hidden_states.shape == everything.hidden_states.shape
    torch.testing.assert_close(some.hidden_states[positions], everything.hidden_states[positions], rtol=0, atol=1e-5)
    torch.testing.assert_close(some.pooled, everything.pooled, rtol=0, atol=1e-5)


def test_fewer_positions_do_not_change_the_gradient(encoder: Encoder, padded_batch: Batch) -> None:
    encoder.eval()
    positions = torch.zeros_like(padded_batch.attention_mask)
    positions[0, 5] = positions[0, 9] = positions[2, 1] = positions[3, 1] = True

    def gradients(positions_to_compute: torch.Tensor | None) -> list[torch.Tensor]:
        encoder.zero_grad()
        states = encoder(padded_batch, positions_to_compute)
        (states.hidden_states[positions].sin().sum() + states.pooled.sum()).backward()
        return [weight.grad for weight in encoder.parameters() if weight.grad is not None]

    for fewer, every in zip(gradients(positions), gradients(None), strict=True):
        torch.testing.assert_close(fewer, every, rtol=1e-4, atol=1e-5)


def test_dropout_acts_in_training_only(encoder: Encoder, padded_batch: Batch) -> None:
    encoder.train()
    assert not torch.equal(encoder(padded_batch).pooled, encoder(padded_batch).pooled)
    encoder.eval()
    assert torch.equal(encoder(padded_batch).pooled, encoder(padded_batch).pooled)


def test_training_noise_is_a_function_of_the_random_state(encoder: Encoder, padded_batch: Batch) -> None:
    encoder(padded_batch)
    state = torch.get_rng_state()
    first = encoder(padded_batch).hidden_states
    torch.set_rng_state(state)
    assert torch.equal(encoder(padded_batch).hidden_states, first)


def test_save_and_load_are_bit_equal(encoder: Encoder, padded_batch: Batch, tmp_path: Path) -> None:
    encoder.eval()
    before = encoder(padded_batch).hidden_states
    write_tensors(tmp_path / "weights.safetensors", encoder.state_dict())  # layers may share their weights
    for weight in encoder.parameters():
        torch.nn.init.constant_(weight, 0.37)
    encoder.load_state_dict(read_tensors(tmp_path / "weights.safetensors"))
    assert torch.equal(encoder(padded_batch).hidden_states, before)


def test_gradient_checkpointing_changes_no_bit(encoder: Encoder, padded_batch: Batch) -> None:
    """Neither of the states, nor of a gradient, nor of the random state afterwards; with dropout and some positions."""
    positions = padded_batch.attention_mask & (torch.arange(13) % 5 == 1)
    found = []
    for encoder.gradient_checkpointing in (False, True):
        torch.manual_seed(7)
        encoder.zero_grad()
        passes = []
        for each in (None, positions):
            states = encoder(padded_batch, each)
            (states.hidden_states[positions].cos().sum() + states.pooled.sum()).backward()
            passes.append(states.pooled)
        gradients = [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None]
        found.append([*passes, *gradients, torch.get_rng_state()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_the_last_layer_of_a_stack_is_initialised_again(encoder: Encoder) -> None:
    if not isinstance(encoder, LayerStack):
        return
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.reinitialize_top(1)
    for name, value in encoder.named_parameters():
        if value.ndim > 1:
            assert torch.equal(value, before[name]) == (encoder.depth(name) < encoder.num_layers), name


@pytest.mark.parametrize("subset", [False, True])
def test_the_host_never_waits_for_the_device(
    encoder: Encoder, padded_batch: Batch, subset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors on the device "meta" have no values: code that reads one, such as a count or a length, fails."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # not implemented for "meta"
    positions = torch.zeros_like(padded_batch.attention_mask)
    positions[0, 5] = positions[3, 1] = True
    meta = torch.device("meta")
    states = encoder.to(meta)(padded_batch.to(meta), positions if subset else None)
    (states.hidden_states.sum() + states.pooled.sum()).backward()


@pytest.mark.parametrize("architecture", [bert, gpt, roberta])
def test_position_embeddings_can_be_initialised_as_sinusoids(architecture: Any) -> None:
    config = architecture.size("3/12/2", vocab_size=99, position_init="sinusoidal", initializer_range=0.5)
    table = architecture.SPEC.encoder(config).embeddings.position.weight
    expected = torch.empty_like(table)
    fill_sinusoids(expected, 0.5)
    assert torch.equal(table, expected)


@pytest.fixture(params=list_modules("encoders"))
def spec(request: pytest.FixtureRequest) -> EncoderSpec:
    return find_encoder(request.param)


def test_the_spec_is_found_by_name_configuration_and_model_type(spec: EncoderSpec, request: Any) -> None:
    name = request.node.callspec.params["spec"]
    encoder = importlib.import_module(f"bertkit.encoders.{name}").tiny()
    assert type(encoder) is spec.encoder
    assert type(encoder.config) is spec.config
    assert name_architecture(encoder.config) == name
    assert find_spec({"model_type": spec.model_type}, "config.json") is spec
    assert spec.title


def test_the_configuration_survives_json(spec: EncoderSpec, request: Any) -> None:
    name = request.node.callspec.params["spec"]
    config = importlib.import_module(f"bertkit.encoders.{name}").tiny().config
    assert config_from_hf(json.loads(json.dumps(config_to_hf(config))), "config.json") == config


def test_some_parameters_are_embeddings(spec: EncoderSpec, request: Any) -> None:
    encoder = importlib.import_module(f"bertkit.encoders.{request.node.callspec.params['spec']}").tiny()
    embeddings = [name for name, _ in encoder.named_parameters() if name.startswith(spec.embeddings)]
    assert embeddings


def test_pretraining_defaults_are_settings_of_a_run(spec: EncoderSpec) -> None:
    if spec.pretraining is None:
        return
    assert spec.size is not None
    for profile in ("paper", "fast"):
        encoder = spec.size("tiny", vocab_size=99)
        task = default_pretraining_task(encoder, vocab_size=99)
        run = PretrainRun(data=Path("data"), output=Path("run"), encoder=encoder, task=task)
        settings = {**architecture_defaults(encoder, vocab_size=99), **profile_settings(profile, encoder)}
        changed = apply(run, [Setting(path, value, profile) for path, value in settings.items()])
        expected = tuple(each for each in spec.pretraining.objectives if profile == "paper" or each != "nsp")
        assert changed.task.objectives == expected
