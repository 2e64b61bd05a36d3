"""A tiny BERT with MLM and NSP on random sentences, shared by the tests of training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batch import Batch, Feature
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, size
from bertkit.model import Model
from bertkit.objective_settings import Masking
from bertkit.objectives.mlm import MaskedLanguageModel, mask_tokens
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.rng import CounterRng
from bertkit.training.fit import Plan, Step, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer

VOCABULARY = 99


class Sentences:
    """41 random rows of different lengths, masked differently in every epoch."""

    def __len__(self) -> int:
        return 41

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        rng = CounterRng(1, 0, indices)
        ids = rng.below("ids", 3, 13) + 5
        lengths = 5 + rng.below("lengths", 8)[:, 0]
        features = [
            Feature(row[:length], np.zeros(length, int), {"nsp": int(row[0] % 2)})
            for row, length in zip(ids, lengths, strict=True)
        ]
        batch = collate(features, pad_id=0)
        masking = Masking(rate=0.3)
        return mask_tokens(
            batch, CounterRng(1, epoch, indices), masking, vocab_size=VOCABULARY, mask_id=4, special_ids=(2, 3)
        )


def make_state(config: OptimizerConfig | None = None, *, has_output_layer: bool = True) -> TrainingState:
    """An untrained model with its optimizer; always the same weights.

    Without the output layer, which is the table of words, the table is looked up and no more, as in fine-tuning.
    """
    torch.manual_seed(0)
    encoder = Bert(size("2/12/3", vocab_size=VOCABULARY, max_positions=13))
    output_layer = {"mlm": MaskedLanguageModel(encoder.embeddings.word)} if has_output_layer else {}
    model = Model(encoder, {**output_layer, "nsp": NextSentencePrediction(12)})
    return TrainingState(model, build_optimizer(model, config or OptimizerConfig(lr=1e-3)))


def make_plan(**changes: object) -> Plan:
    fields: dict[str, object] = {"total_steps": 12, "batch_size": 7, "seed": 5, **changes}
    return Plan(**fields)  # type: ignore[arg-type]


def weights_and_moments(state: TrainingState) -> dict[str, Tensor]:
    groups = state.groups()
    return {**groups["model"], **groups["optimizer"]}


def copy_groups(state: TrainingState) -> dict[str, dict[str, Tensor]]:
    return {name: {key: value.clone() for key, value in group.items()} for name, group in state.groups().items()}


def are_equal(one: TrainingState, other: TrainingState) -> bool:
    """Whether all weights and moments are equal bit for bit."""
    others = weights_and_moments(other)
    return all(torch.equal(value, others[name]) for name, value in weights_and_moments(one).items())


def largest_difference(one: TrainingState, other: TrainingState) -> float:
    """Of all weights and moments."""
    others = weights_and_moments(other)
    return max(float((value - others[name]).abs().max()) for name, value in weights_and_moments(one).items())


def run(state: TrainingState, plan: Plan, until: int | None = None) -> list[Step]:
    return list(fit(state, Sentences(), plan, until=until))


def turn_dropout_off(model: nn.Module) -> None:
    for module in model.modules():
        for attribute in ("rate", "dropout"):
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, 0.0)


class ScaledLoss:
    """The ``loss`` of a model, multiplied by the next of ``factors`` in every call."""

    def __init__(self, model: Model, factors: Iterator[float]) -> None:
        self.loss, self.factors = model.loss, factors

    def __call__(self, outputs: object, batch: Batch) -> object:
        terms = self.loss(outputs, batch)  # type: ignore[arg-type]
        factor = next(self.factors)
        for term in terms.values():
            object.__setattr__(term, "sum", term.sum * factor)
        return terms
