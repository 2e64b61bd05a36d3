"""Gradients by row give the same training as those of whole tables, and the norm is that of all numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import pytest
import torch
from tests.training.tiny_training import (
    VOCABULARY,
    ScaledLoss,
    are_equal,
    copy_groups,
    largest_difference,
    make_plan,
    make_state,
    run,
    turn_dropout_off,
)
from torch import nn

from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.training import gradients
from bertkit.training.fit import TrainingState
from bertkit.training.gradients import dense_parts, kept_by_row, large_tables, total_norm
from bertkit.training.optimizer import OptimizerConfig


@pytest.fixture
def by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of words counts as large; those of positions and segments do not."""
    monkeypatch.setattr(gradients, "_FEWEST_ROWS", VOCABULARY)


def word_table(state: TrainingState) -> nn.Embedding:
    table = state.model.encoder.get_submodule("embeddings.word")
    assert isinstance(table, nn.Embedding)
    return table


def find_tables(state: TrainingState) -> list[nn.Embedding]:
    return large_tables(state.model, state.optimizer)


@pytest.mark.parametrize("kind", ["adam", "lamb", "adagrad", "muon"])
@pytest.mark.parametrize("has_output_layer", [False, True])
@pytest.mark.parametrize("micro_batch_size", [None, 3])
def test_the_training_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
    kind: Literal["adam", "lamb", "adagrad", "muon"],
    has_output_layer: bool,
    micro_batch_size: int | None,
) -> None:
    """Also if the table is the output layer of an objective that does not say so."""
    monkeypatch.setattr(MaskedLanguageModel, "predicts_vocabulary", False)
    config = OptimizerConfig(kind=kind, lr=1e-3, clip_norm=0.5)
    plan = make_plan(optimizer=config, micro_batch_size=micro_batch_size)
    expected, state = (make_state(config, has_output_layer=has_output_layer) for _ in range(2))
    turn_dropout_off(expected.model)
    turn_dropout_off(state.model)
    in_full = run(expected, plan, until=4)
    monkeypatch.setattr(gradients, "_FEWEST_ROWS", VOCABULARY)
    steps = run(state, plan, until=4)
    assert max(step.grad_norm for step in steps) > 0.5  # some were clipped
    assert [each.grad_norm for each in steps] == pytest.approx([each.grad_norm for each in in_full], rel=1e-4)
    assert largest_difference(state, expected) < 1e-5


@pytest.mark.usefixtures("by_row")
def test_a_resume_is_bit_exact() -> None:
    uninterrupted, stopped, resumed = (make_state(has_output_layer=False) for _ in range(3))
    torch.manual_seed(3)
    run(uninterrupted, make_plan(), until=7)
    torch.manual_seed(3)
    run(stopped, make_plan(), until=4)
    groups = copy_groups(stopped)
    resumed.restore(groups, 4)
    run(resumed, make_plan(), until=7)
    assert are_equal(uninterrupted, resumed)


@pytest.mark.usefixtures("by_row")
def test_a_step_that_is_skipped_leaves_nothing_behind() -> None:
    expected, state = (make_state(has_output_layer=False) for _ in range(2))
    turn_dropout_off(expected.model)
    turn_dropout_off(state.model)
    run(expected, make_plan(), until=1)
    state.model.loss = ScaledLoss(state.model, iter((1.0, math.nan)))  # type: ignore[method-assign, assignment]
    run(state, make_plan(), until=2)
    assert state.skipped_in_a_row == 1
    assert are_equal(state, expected)


@pytest.mark.usefixtures("by_row")
def test_a_table_that_is_only_looked_up_has_the_rows_of_the_batch() -> None:
    state = make_state(has_output_layer=False)
    table = word_table(state)
    with kept_by_row(find_tables(state)):
        table(torch.tensor([[7, 9, 7]])).sum().backward()
    assert not table.sparse
    (values,) = dense_parts(table.parameters())
    torch.testing.assert_close(values, torch.tensor([[2.0], [1.0]]).expand(2, 12))


@pytest.mark.usefixtures("by_row")
def test_an_error_in_a_pass_leaves_the_table_as_it_was() -> None:
    state = make_state(has_output_layer=False)

    def break_off() -> Iterator[float]:
        raise ArithmeticError
        yield 1.0

    state.model.loss = ScaledLoss(state.model, break_off())  # type: ignore[method-assign, assignment]
    with pytest.raises(ArithmeticError):
        run(state, make_plan())
    assert not word_table(state).sparse


def test_small_tables_are_left_alone() -> None:
    assert find_tables(make_state(has_output_layer=False)) == []


@pytest.mark.usefixtures("by_row")
def test_output_layers_are_left_alone() -> None:
    assert find_tables(make_state()) == []


def test_the_norm_is_that_of_all_numbers() -> None:
    """torch's own is 5e-4 too small here."""
    gradients = [torch.randn(9000, 1300), torch.randn(700, 3), torch.randn(13)]
    exact = torch.cat([each.flatten() for each in gradients]).double().norm()
    assert float(total_norm(gradients)) == pytest.approx(float(exact), rel=1e-6)
