"""Losses and metrics over a split: independent of the batch size, and without a trace on the model."""

from __future__ import annotations

import pytest
from tests.training.tiny_training import Sentences, make_state

from bertkit.training.evaluation import evaluate_losses


def test_evaluation_turns_dropout_off_and_leaves_the_model_in_training() -> None:
    model = make_state().model.train()
    results = [evaluate_losses(model, Sentences(), batch_size=rows, precision="float32") for rows in (5, 41)]
    assert results[0] == pytest.approx(results[1], abs=1e-5)
    assert set(results[0]) == {"mlm", "nsp", "mlm_accuracy", "nsp_accuracy", "nsp_random"}
    assert model.training


def test_a_limit_evaluates_the_first_examples_only() -> None:
    class FirstSentences(Sentences):
        def __len__(self) -> int:
            return 7

    model = make_state().model
    limited = evaluate_losses(model, Sentences(), batch_size=5, precision="float32", limit=7)
    assert limited == pytest.approx(evaluate_losses(model, FirstSentences(), batch_size=5, precision="float32"))
    everything = evaluate_losses(model, Sentences(), batch_size=5, precision="float32")
    assert limited["mlm"] != pytest.approx(everything["mlm"])
