"""Optimizers: AdamW as in BERT or with bias correction, LAMB for large batches, Muon, Adagrad for ELMo.

google-research/bert ``optimization.py`` (``AdamWeightDecayOptimizer``) has no bias correction. That equals Adam with a
step counter so large that the correction factors 1 - beta^t are exactly 1 in float32. So one AdamW does both: its step
counter starts at 0 with correction, and at 1e9 without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from bertkit.errors import usage_error
from bertkit.machine.precision import Precision
from bertkit.ranges import LearningRate, NonNegativeFloat, PositiveFloat, Share, ShareBelowOne, check_ranges
from bertkit.training.adagrad import Adagrad
from bertkit.training.adam import AdamW
from bertkit.training.base_optimizer import Optimizer, ParameterGroup
from bertkit.training.lamb import Lamb
from bertkit.training.muon import Muon, find_hidden_matrices

_UNCORRECTED_STEP = 1.0e9
"""0.999^(1e9) is 0, and adding 1 to 1e9 in float32 changes nothing."""

_MOMENTS = ("exp_avg", "exp_avg_sq", "momentum")


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Settings of the optimizer; the defaults are those of BERT's pre-training (section A.2, ``optimization.py``).

    LAMB's paper corrects the bias; the authors' code, like BERT's, does not. Adagrad (Duchi et al. 2011) starts with
    accumulators of ``initial_accumulator``, and its weight decay is added to the gradient.

    ``muon_lr`` and ``muon_weight_decay`` are those of the hidden matrices with ``muon``; AdamW trains all other
    parameters with ``lr`` and ``weight_decay``. Both rates follow the schedule, and per step a matrix decays by its
    rate times its decay. Muon's updates have one size whatever the gradient: with a decay of 1e-5 per step the matrices
    of a BERT-mini were ten times their first size after 8,000 steps, and some of its fine-tunings failed.
    """

    kind: Literal["adam", "lamb", "adagrad", "muon"] = "adam"
    lr: LearningRate = 1e-4
    muon_lr: LearningRate = 0.02
    beta1: ShareBelowOne = 0.9
    beta2: ShareBelowOne = 0.999
    eps: Share = 1e-6
    weight_decay: NonNegativeFloat = 0.01
    muon_weight_decay: NonNegativeFloat = 0.1
    bias_correction: bool = False
    initial_accumulator: PositiveFloat = 1.0
    clip_norm: NonNegativeFloat = 1.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.kind == "muon" and self.lr == 0:
            raise usage_error("lr is 0; muon needs a rate above 0 for the parameters that are no hidden matrices.")
        if self.kind != "adagrad" and self.eps == 0:  # Adagrad has an initial accumulator
            raise usage_error("eps is 0; it must be above 0: a parameter without a gradient would become 0 / 0.")

    def needs(self) -> dict[str, str]:
        """The settings that these ones switch off, and what would switch them on."""
        muon = {} if self.kind == "muon" else dict.fromkeys(("muon_lr", "muon_weight_decay"), "optimizer.kind=muon")
        if self.kind != "adagrad":
            return muon | {"initial_accumulator": "optimizer.kind=adagrad"}
        return muon | dict.fromkeys(("beta1", "beta2", "bias_correction"), "optimizer.kind=adam or lamb or muon")


def build_optimizer(
    model: nn.Module,
    config: OptimizerConfig,
    lr_scales: Mapping[str, float] | None = None,
    l2_penalties: Mapping[str, float] | None = None,
    precision: Precision = "float32",
) -> Optimizer:
    """AdamW, LAMB, Muon or Adagrad, with weight decay on matrices only, not on biases and LayerNorm (one dimension).

    ``lr_scales`` maps the name of a parameter to a factor of its learning rate (1 without an entry). ``l2_penalties``
    maps a name to the factor of the parameter's squared norm in the loss; this part of the gradient is added once per
    step, after clipping. ``precision`` is that of Muon's matrix products.
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    hidden = find_hidden_matrices(model) if config.kind == "muon" else {}
    optimizer = _build(config, _group(trained, config, lr_scales or {}, hidden), precision)
    for group in optimizer.groups:
        for parameter in group.parameters:
            optimizer.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                **{moment: torch.zeros_like(parameter) for moment in _list_moments(config, group.muon_matrices)},
            }
    restart(optimizer, config)
    set_lr(optimizer, config)
    optimizer.penalties = [(trained[name], factor) for name, factor in (l2_penalties or {}).items()]
    return optimizer


def _group(
    trained: Mapping[str, nn.Parameter],
    config: OptimizerConfig,
    lr_scales: Mapping[str, float],
    hidden: Mapping[str, int],
) -> list[ParameterGroup]:
    """The parameters in groups of equal settings, matrices first; ``hidden`` are the matrices that Muon trains."""
    groups: dict[tuple[bool, int, float], list[Tensor]] = {}
    for is_matrix in (True, False):
        for name, parameter in trained.items():
            if (parameter.ndim > 1) is is_matrix:
                key = (is_matrix, hidden.get(name, 0), lr_scales.get(name, 1.0))
                groups.setdefault(key, []).append(parameter)
    return [
        ParameterGroup(
            parameters=each,
            betas=(config.beta1, config.beta2),
            eps=config.eps,
            weight_decay=(config.muon_weight_decay if matrices else config.weight_decay) if is_matrix else 0.0,
            is_matrix=is_matrix,
            muon_matrices=matrices,
            lr_scale=lr_scale,
        )
        for (is_matrix, matrices, lr_scale), each in groups.items()
    ]


def _list_moments(config: OptimizerConfig, matrices: int) -> tuple[str, ...]:
    if config.kind == "adagrad":
        return ("sum",)
    return ("momentum",) if matrices else ("exp_avg", "exp_avg_sq")


def _build(config: OptimizerConfig, groups: Sequence[ParameterGroup], precision: Precision) -> Optimizer:
    if config.kind == "lamb":
        return Lamb(groups)
    if config.kind == "muon":
        return Muon(groups, dtype=getattr(torch, precision))
    if config.kind == "adagrad":
        return Adagrad(groups)
    return AdamW(groups)


def restart(optimizer: Optimizer, config: OptimizerConfig) -> None:
    """Set the moments and step counters to their initial values."""
    for state in optimizer.state.values():
        state["step"].fill_(0.0 if config.bias_correction else _UNCORRECTED_STEP)
        for moment in state.keys() & _MOMENTS:
            state[moment].zero_()
        if "sum" in state:
            state["sum"].fill_(config.initial_accumulator)


def set_lr(optimizer: Optimizer, config: OptimizerConfig, factor: float = 1.0) -> None:
    """Set every learning rate: the peak in ``config`` times ``factor`` and the parameter's entry in ``lr_scales``."""
    for group in optimizer.groups:
        group.lr = (config.muon_lr if group.muon_matrices else config.lr) * factor * group.lr_scale


def named_state(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Moments and step counters by name, ``<parameter>/<exp_avg | exp_avg_sq | momentum | sum | step>``; no copies."""
    return {
        f"{name}/{kind}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
    }


def load_named_state(model: nn.Module, optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    """Load the tensors of ``named_state`` in place, bit for bit."""
    for name, parameter in model.named_parameters():
        for kind, value in optimizer.state.get(parameter, {}).items():
            value.copy_(tensors[f"{name}/{kind}"])
