"""Muon against torch's own, its choice of matrices, and its state."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.training.optimizer_steps import set_gradients, take_steps
from torch import nn

from bertkit.encoders import bert
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.nn.attention import SelfAttention
from bertkit.objective_settings import ObjectiveSettings
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.training.muon import find_hidden_matrices, orthogonalize
from bertkit.training.optimizer import OptimizerConfig, build_optimizer, load_named_state, named_state, set_lr

CONFIG = OptimizerConfig(kind="muon", lr=0.003, muon_lr=0.05, muon_weight_decay=0.2, bias_correction=True)


def build_bert() -> Model:
    encoder = bert.Bert(bert.size("2/24/2", vocab_size=300, max_positions=16))
    settings = ObjectiveSettings()
    return Model(
        encoder,
        {
            "mlm": MaskedLanguageModel.build(encoder, settings),
            "nsp": NextSentencePrediction.build(encoder, settings),
        },
    )


def test_hidden_matrices_are_linear_layers_without_embeddings_and_output_layers() -> None:
    found = find_hidden_matrices(build_bert())
    block = {"attention.qkv": 3, "attention.output": 1, "feed_forward.inner": 1, "feed_forward.outer": 1}
    assert found == {
        **{f"encoder.layers.{n}.{name}.weight": count for n in range(2) for name, count in block.items()},
        "encoder.pooler.dense.weight": 1,
        "objectives.mlm.transform.weight": 1,
    }


@pytest.mark.parametrize("shape", [(48, 24), (24, 48)])
def test_singular_values_become_nearly_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(3)
    matrices = torch.randn(5, *shape)
    found = orthogonalize(matrices)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.6 and values.max() < 1.3
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(found.flatten(), (left @ right).flatten(), dim=0) > 0.97


def test_steps_equal_those_of_torch() -> None:
    """torch.optim.Muon computes in bfloat16, so they agree to its rounding."""
    torch.manual_seed(3)
    model, other = (
        nn.Sequential(nn.Linear(16, 48), nn.Linear(48, 16)),
        nn.Sequential(nn.Linear(16, 48), nn.Linear(48, 16)),
    )
    other.load_state_dict(model.state_dict())
    before = [each.weight.detach().clone() for each in model if isinstance(each, nn.Linear)]
    steps = take_steps(model, build_optimizer(model, CONFIG, precision="bfloat16"), 4)
    names = dict(other.named_parameters())
    reference = torch.optim.Muon(
        [names["0.weight"], names["1.weight"]], lr=0.05, weight_decay=0.2, adjust_lr_fn="original"
    )
    adam = torch.optim.AdamW(
        [names["0.bias"], names["1.bias"]], lr=0.003, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0
    )
    for gradients in steps:
        set_gradients(other, gradients)
        reference.step()  # type: ignore[no-untyped-call]
        adam.step()
    for number, start in zip((0, 1), before, strict=True):
        moved, expected = (names_of[f"{number}.weight"] - start for names_of in (dict(model.named_parameters()), names))
        assert (moved - expected).norm() < 0.02 * expected.norm()
        torch.testing.assert_close(model[number].bias, other[number].bias, atol=1e-6, rtol=1e-5)


def test_queries_keys_and_values_are_three_matrices() -> None:
    torch.manual_seed(3)
    attention = SelfAttention(qkv=nn.Linear(8, 24), output=nn.Linear(8, 8), num_heads=2, dropout=0.0)
    start = attention.qkv.weight.detach().clone()
    config = OptimizerConfig(kind="muon", lr=1.0, muon_lr=1.0, muon_weight_decay=0.0)
    gradient = take_steps(attention, build_optimizer(attention, config), 1)[0][0]
    expected = torch.cat([orthogonalize(part[None])[0] for part in gradient.chunk(3)])
    torch.testing.assert_close(start - attention.qkv.weight, expected, atol=1e-5, rtol=1e-5)


def test_both_rates_follow_the_schedule_and_the_scales() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.Linear(7, 7))
    optimizer = build_optimizer(model, CONFIG, {"0.weight": 0.5, "0.bias": 0.5})
    set_lr(optimizer, CONFIG, 0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {names[id(p)]: group.lr for group in optimizer.groups for p in group.parameters}
    expected = {"0.weight": 0.0025, "0.bias": 0.00015, "1.weight": 0.005, "1.bias": 0.0003}
    assert found == pytest.approx(expected)


def test_the_rate_of_other_weights_is_not_that_of_the_hidden_matrices() -> None:
    """As in a phase that trains new heads with ``head_lr``."""
    optimizer = build_optimizer(nn.Linear(7, 7), CONFIG)
    set_lr(optimizer, replace(CONFIG, lr=10 * CONFIG.lr))
    rates = {bool(group.muon_matrices): group.lr for group in optimizer.groups}
    assert rates == pytest.approx({True: CONFIG.muon_lr, False: 10 * CONFIG.lr})


def test_the_state_resumes_bit_for_bit() -> None:
    model, copy = build_bert(), build_bert()
    optimizer, other = build_optimizer(model, CONFIG), build_optimizer(copy, CONFIG)
    take_steps(model, optimizer, 3)
    copy.load_state_dict(model.state_dict())
    saved = {name: value.clone() for name, value in named_state(model, optimizer).items()}
    assert {name.rpartition("/")[2] for name in saved if "qkv.weight" in name} == {"step", "momentum"}
    load_named_state(copy, other, saved)
    for each, its_optimizer in ((model, optimizer), (copy, other)):
        take_steps(each, its_optimizer, 2)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, copy.state_dict()[name]), name


def test_parameters_without_a_gradient_are_not_updated() -> None:
    model = nn.Sequential(nn.Linear(13, 7), nn.Linear(7, 7))
    optimizer = build_optimizer(model, CONFIG)
    before = [p.detach().clone() for p in model.parameters()]
    for parameter in model[0].parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    changed = [not torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True)]
    assert changed == [True, True, False, False]


@pytest.mark.parametrize("setting", [{"muon_lr": -1.0}, {"muon_lr": math.nan}, {"kind": "muon", "lr": 0.0}])
def test_rates_out_of_range_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(BertkitError, match=r"^(muon_lr|lr) is .*; (it must|muon needs)"):
        OptimizerConfig(**setting)  # type: ignore[arg-type]
