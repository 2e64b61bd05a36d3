"""The loop: gradients weighted by labels, exact resumes, and steps that must not happen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertkit.batch import Batch, Feature
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, size
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objective_settings import Masking
from bertkit.objectives.mlm import MaskedLanguageModel, mask_tokens
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.rng import CounterRng
from bertkit.training.evaluation import evaluate_losses
from bertkit.training.fit import Plan, Step, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.precision import Precision

VOCABULARY = 99


class Sentences:
    """Made-up rows of different lengths, masked anew every epoch."""

    def __len__(self) -> int:
        return 41

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        draws = CounterRng(1, 0, indices)
        ids = draws.below("ids", 3, 13) + 5
        lengths = 5 + draws.below("lengths", 8)[:, 0]
        features = [
            Feature(row[:length], np.zeros(length, int), {"nsp": int(row[0] % 2)})
            for row, length in zip(ids, lengths, strict=True)
        ]
        batch = collate(features, pad_id=0)
        masking = Masking(rate=0.3)
        return mask_tokens(
            batch, CounterRng(1, epoch, indices), masking, vocab_size=VOCABULARY, mask_id=4, special_ids=(2, 3)
        )


def state(config: OptimizerConfig | None = None) -> TrainingState:
    torch.manual_seed(0)
    encoder = Bert(size("2/12/3", vocab_size=VOCABULARY, max_positions=13))
    objectives = {"mlm": MaskedLanguageModel(encoder.embeddings.word), "nsp": NextSentencePrediction(12)}
    model = Model(encoder, objectives)
    return TrainingState(model, build_optimizer(model, config or OptimizerConfig(lr=1e-3)))


def plan(**changes: object) -> Plan:
    fields: dict[str, object] = {"total_steps": 12, "batch_size": 7, "seed": 5, **changes}
    return Plan(**fields)  # type: ignore[arg-type]


def weights(trained: TrainingState) -> dict[str, Tensor]:
    groups = trained.groups()
    return {**groups["model"], **groups["optimizer"]}


def same(one: TrainingState, other: TrainingState) -> bool:
    return all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())


def run(trained: TrainingState, wanted: Plan, until: int | None = None) -> list[Step]:
    return list(fit(trained, Sentences(), wanted, until=until))


def test_the_loss_falls() -> None:
    steps = run(state(OptimizerConfig(lr=1e-2)), plan(total_steps=90))
    assert [step.step for step in steps] == list(range(1, 91))
    assert sum(steps[-1].losses.values()) < sum(steps[0].losses.values()) - 0.5
    assert steps[0].tokens > 7 * 5
    assert steps[-1].epoch == 89 // 6


@pytest.mark.parametrize(("stop", "kind"), [(1, "adam"), (5, "adam"), (6, "adam"), (11, "adam"), (5, "lamb")])
def test_a_resume_is_bit_exact_with_dropout_on(stop: int, kind: Literal["adam", "lamb"]) -> None:
    config = OptimizerConfig(kind=kind, lr=1e-3)
    whole = state(config)
    losses = [step.losses for step in run(whole, plan())]
    first = state(config)
    run(first, plan(), until=stop)
    groups = {name: {k: v.clone() for k, v in group.items()} for name, group in first.groups().items()}
    torch.manual_seed(99)
    second = state(config)
    torch.rand(7)
    second.restore(groups, stop)
    assert [step.losses for step in run(second, plan())] == losses[stop:]
    assert same(whole, second)


@pytest.mark.parametrize("workers", [0, 3, 20])
def test_who_makes_the_batches_changes_nothing(workers: int) -> None:
    expected = state()
    steps = run(expected, plan())
    trained = state()
    found = run(trained, plan(loader_workers=workers), until=5) + run(trained, plan(loader_workers=workers))
    assert [(step.epoch, step.losses, step.tokens) for step in found] == [
        (step.epoch, step.losses, step.tokens) for step in steps
    ]
    assert same(trained, expected)


def test_micro_batches_weigh_every_label_alike() -> None:
    """With dropout off, any cutting of the batch is the same step."""
    ends = []
    for rows in (None, 1, 3):
        trained = state()
        for module in trained.model.modules():
            for attribute in ("rate", "dropout"):
                if isinstance(getattr(module, attribute, None), float):
                    setattr(module, attribute, 0.0)
        steps = run(trained, plan(micro_batch_size=rows, total_steps=4))
        ends.append((trained, [step.losses for step in steps]))
    for trained, losses in ends[1:]:
        for name, value in ends[0][0].model.state_dict().items():
            torch.testing.assert_close(trained.model.state_dict()[name], value, atol=2e-5, rtol=1e-4)
        assert losses[0] == pytest.approx(ends[0][1][0], abs=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradient_checkpointing_trains_the_same_bits(precision: Precision) -> None:
    kept, computed_again = state(), state()
    computed_again.model.encoder.gradient_checkpointing = True
    ends = []
    for trained in (kept, computed_again):
        torch.manual_seed(7)
        ends.append([step.losses for step in run(trained, plan(micro_batch_size=3, precision=precision))])
    assert ends[0] == ends[1]
    assert same(kept, computed_again)


class Poisoned:
    """A model whose chosen calls return a loss that is not finite."""

    def __init__(self, model: Model, calls: Iterator[float]) -> None:
        self.loss, self.calls = model.loss, calls

    def __call__(self, outputs: object, batch: Batch) -> object:
        terms = self.loss(outputs, batch)  # type: ignore[arg-type]
        factor = next(self.calls)
        for term in terms.values():
            object.__setattr__(term, "sum", term.sum * factor)
        return terms


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_changes_nothing(poison: float) -> None:
    trained = state()
    run(trained, plan(), until=2)
    before = {name: value.clone() for name, value in weights(trained).items()}
    trained.model.loss = Poisoned(trained.model, iter([poison, 1.0]))  # type: ignore[assignment, method-assign]
    steps = fit(trained, Sentences(), plan())
    assert next(steps).skipped
    assert all(torch.equal(value, before[name]) for name, value in weights(trained).items())
    assert not next(steps).skipped


def test_training_gives_up_after_ten_bad_steps_in_a_row() -> None:
    trained = state()
    trained.model.loss = Poisoned(trained.model, iter([float("nan")] * 10))  # type: ignore[assignment, method-assign]
    with pytest.raises(BertkitError, match="10 steps in a row"):
        run(trained, plan())


@pytest.mark.parametrize("label", ["tokens", "flops"])
def test_a_label_may_have_the_name_of_a_count(label: str) -> None:
    """Losses, token counts and label counts are independent of the names of labels."""

    class Relabelled(Sentences):
        def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
            batch = super().batch(epoch, indices)
            return replace(batch, labels={"mlm": batch.labels["mlm"], label: batch.labels["nsp"]})

    expected = next(fit(state(), Sentences(), plan(), count_flops=lambda batch: 1000))
    renamed = state()
    renamed.model.objectives["nsp"].label = label  # type: ignore[assignment]
    found = next(fit(renamed, Relabelled(), plan(), count_flops=lambda batch: 1000))
    assert (found.tokens, found.flops) == (expected.tokens, expected.flops)
    assert found.losses == {"mlm": expected.losses["mlm"], label: expected.losses["nsp"]}


def test_clipping_bounds_the_step_by_the_global_norm() -> None:
    trained = state(OptimizerConfig(lr=1e-3, clip_norm=1e-3))
    step = next(fit(trained, Sentences(), plan()))
    assert step.grad_norm > 1e-3


def test_evaluation_reads_dropout_off_and_leaves_training_on() -> None:
    trained = state()
    trained.model.train()
    scores = [evaluate_losses(trained.model, Sentences(), batch_size=rows, precision="float32") for rows in (5, 41)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert set(scores[0]) == {"mlm", "nsp", "mlm_accuracy", "nsp_accuracy"}
    assert trained.model.training
