"""Losses and metrics over a split: independent of the batch size, and without a trace on the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.training.tiny_training import Sentences, make_state
from tests.training.two_processes import Results
from torch import nn

from bertkit.batch import Batch
from bertkit.encoders import elmo
from bertkit.model import Model
from bertkit.objectives.bilm import BidirectionalLanguageModel
from bertkit.rng import CounterRng
from bertkit.training.evaluation import evaluate_losses, evaluation_mode


class Words:
    """13 rows of random words of ELMo with random neighbours."""

    def __len__(self) -> int:
        return 13

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        rng = CounterRng(1, epoch, indices)
        characters = rng.below("characters", 100, 9 * 7).reshape(len(indices), 9, 7) + 5
        neighbours = rng.below("neighbours", 37, 9 * 2).reshape(len(indices), 9, 2)
        real = torch.ones(len(indices), 9, dtype=torch.bool)
        return Batch(torch.from_numpy(characters), real.long() * 0, real, {"bilm": torch.from_numpy(neighbours)})


def test_evaluation_turns_dropout_off_and_leaves_the_model_in_training() -> None:
    model = make_state().model.train()
    results = [evaluate_losses(model, Sentences(), batch_size=rows, precision="float32") for rows in (5, 41)]
    assert results[0] == pytest.approx(results[1], abs=1e-5)
    assert set(results[0]) == {"mlm", "nsp", "mlm_accuracy", "nsp_accuracy", "nsp_random"}
    assert model.training


def test_a_limit_evaluates_examples_that_are_spread_over_the_source() -> None:
    """Rows are in the order of the corpus, so the first ones are those of its first documents."""
    read: list[int] = []

    class Recorded(Sentences):
        def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
            read.extend(indices.tolist())
            return super().batch(epoch, indices)

    model = make_state().model
    limited = evaluate_losses(model, Recorded(), batch_size=5, precision="float32", limit=7)
    assert read == [0, 5, 11, 17, 23, 29, 35]
    everything = evaluate_losses(model, Sentences(), batch_size=5, precision="float32")
    assert limited["mlm"] != pytest.approx(everything["mlm"])


def test_processes_divide_the_batches_and_find_the_same_losses(two_process_results: Results) -> None:
    found = two_process_results["evaluations"]
    assert found["two"] == pytest.approx(found["one"], abs=1e-6)
    assert found["rows"] == [*range(20), 40]  # the first and the last of three batches


def test_rows_that_continue_each_other_are_read_by_every_process(two_process_results: Results) -> None:
    found = two_process_results["evaluations"]
    assert found["ordered_rows"] == list(range(40))
    assert found["ordered"] != pytest.approx(found["one"], abs=1e-6)


def test_the_state_of_an_encoder_is_cleared_before_an_evaluation_and_restored_after_it() -> None:
    encoder = elmo.tiny()
    encoder.stateful = True
    model = Model(encoder, {"bilm": BidirectionalLanguageModel(encoder.hidden_size, 37, num_samples=None)})
    before = evaluate_losses(model, Words(), batch_size=5, precision="float32")
    assert encoder.state() == {}
    with torch.no_grad():
        model(Words().batch(0, np.arange(5)))
    state = encoder.state()
    assert evaluate_losses(model, Words(), batch_size=5, precision="float32") == before
    assert state and all(torch.equal(value, state[name]) for name, value in encoder.state().items())


def test_a_module_that_was_in_evaluation_mode_stays_in_it() -> None:
    """A new module around an encoder is in training mode, and the encoder inside of it need not be."""
    inner = nn.Sequential(nn.Dropout(0.5)).eval()
    outer = nn.Sequential(inner, nn.Dropout(0.5))
    with evaluation_mode(outer):
        assert not any(module.training for module in outer.modules())
    assert [module.training for module in outer.modules()] == [True, False, False, True]
