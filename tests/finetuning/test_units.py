"""Numbers in the unit of the files and of training."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.tiny_bert import SENTENCES, make_encoder, make_tokenizer

from bertkit.data.features import collate
from bertkit.finetuning.units import change_unit, in_files_unit
from bertkit.model import Model
from bertkit.objectives.regression import Regression
from bertkit.task_types import RegressionTask, TextClassificationTask, TextExample
from bertkit.task_types.regression import Numbers

PRICES = RegressionTask(name="prices", metric="pearson", numbers=Numbers(origin=3000.0, unit=4000.0))


TOKENIZER = make_tokenizer()


def build_model(task: RegressionTask | TextClassificationTask) -> Model:
    encoder = make_encoder(TOKENIZER)
    return Model(encoder, task.objectives(encoder)).eval()


@torch.no_grad()
def values(model: Model) -> torch.Tensor:
    features = [PRICES.encode(TextExample("0", text), TOKENIZER)[0] for text in SENTENCES]
    numbers: torch.Tensor = model(collate(features, pad_id=TOKENIZER.pad_id))["number"]["value"]
    return numbers


def test_a_saved_model_gives_the_numbers_of_the_files() -> None:
    model = build_model(PRICES)
    before = values(model)
    saved, task = in_files_unit(model, PRICES)
    torch.testing.assert_close(values(saved.eval()), before * 4000 + 3000)
    assert task == replace(PRICES, numbers=Numbers())
    assert torch.equal(values(model), before)  # training goes on in its own unit


@pytest.mark.parametrize("numbers", [Numbers(), Numbers(origin=1.7e9, unit=10.0), Numbers(unit=1e60)])
def test_a_unit_stays_where_there_is_none_or_float32_is_too_coarse(numbers: Numbers) -> None:
    task = replace(PRICES, numbers=numbers)
    model = build_model(task)
    assert in_files_unit(model, task) == (model, task)


def test_other_tasks_have_no_unit() -> None:
    task = TextClassificationTask(name="t", metric="accuracy", labels=("a", "b"))
    model = build_model(task)
    assert in_files_unit(model, task) == (model, task)


def test_a_head_changes_to_the_unit_of_another_task() -> None:
    head = Regression(28)
    weight, bias = head.regressor.weight.clone(), head.regressor.bias.clone()
    change_unit(head, Numbers(origin=1.0, unit=2.0), Numbers(origin=5.0, unit=4.0))
    torch.testing.assert_close(head.regressor.weight, weight * 0.5)
    torch.testing.assert_close(head.regressor.bias, bias * 0.5 - 1)
