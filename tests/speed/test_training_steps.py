"""The steps that are timed, of bertkit and of other libraries."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from bertkit.options.speed import BenchPretrainOptions
from bertkit.speed.pretraining import OPTIMIZER, OneBatch, build_huggingface, build_model, make_batch
from bertkit.speed.training_steps import make_step, own_training

pytestmark = pytest.mark.usefixtures("without_shape_checks")

SMALL = BenchPretrainOptions(size="1/12/2", batch_size=3, seq_length=13)


def test_own_steps_are_those_of_the_training_loop() -> None:
    torch.manual_seed(0)
    source = OneBatch(make_batch(3, 13))
    steps = list(islice(own_training(build_model(SMALL), source, OPTIMIZER, batch_size=3, precision="float32"), 30))
    assert [(each.step, each.epoch, each.tokens) for each in steps[:3]] == [(1, 0, 39), (2, 1, 39), (3, 2, 39)]
    assert steps[0].loss == pytest.approx(11.0, abs=0.3)  # ln 30522 + ln 2
    assert {each.lr for each in steps} == {OPTIMIZER.lr}
    assert steps[-1].loss < steps[0].loss
    assert not any(each.skipped for each in steps)


def test_a_step_of_hugging_face_changes_the_weights_and_returns_its_loss() -> None:
    pytest.importorskip("transformers", reason="install transformers")
    torch.manual_seed(0)
    model, find_loss = build_huggingface(SMALL, make_batch(3, 13))
    step = make_step(model, OPTIMIZER, "float32")
    losses = [step(find_loss) for _ in range(30)]
    assert losses[0] == pytest.approx(11.0, abs=0.3)  # ln 30522 + ln 2
    assert losses[-1] < losses[0]
