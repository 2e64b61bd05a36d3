from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from bertkit.batch import Feature
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference.predict import count_padding, predict, run_features, stream
from bertkit.model import Model
from bertkit.objectives.multiple_choice import MultipleChoice
from bertkit.task_types import Prediction, RegressionTask, TextClassificationTask, TextExample
from bertkit.text.wordpiece import WordPiece


def numbers(predictions: list[Prediction]) -> torch.Tensor:
    return torch.tensor([list(each.scores.values()) for each in predictions])


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_predictions_are_in_order_for_every_batch_size(
    batch_size: int, model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    alone = [predict(model, task, [each], tokenizer, precision="float32")[0] for each in examples]
    together = predict(model, task, examples, tokenizer, batch_size=batch_size, precision="float32")
    assert [each.label for each in together] == [each.label for each in alone]
    torch.testing.assert_close(numbers(together), numbers(alone), rtol=0, atol=1e-5)
    assert len({each.label for each in alone}) > 1, "a model that always says the same would prove nothing"


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_batches_that_run_beside_each_other_use_one_core_each(
    model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    seen: list[tuple[int, int]] = []
    hook = model.encoder.register_forward_pre_hook(
        lambda *_: seen.append((threading.get_ident(), torch.get_num_threads()))
    )
    many = examples * 6
    together = predict(model, task, many, tokenizer, batch_size=2)
    hook.remove()
    assert len(seen) == len(many) // 2
    assert {threads for _, threads in seen} == {1}
    assert len({thread for thread, _ in seen}) > 1
    assert torch.get_num_threads() == 3
    alone = [predict(model, task, [each], tokenizer)[0] for each in examples] * 6
    torch.testing.assert_close(numbers(together), numbers(alone), rtol=0, atol=1e-5)


@pytest.mark.usefixtures("three_threads")
def test_a_thread_that_begins_meanwhile_has_all_cores(
    model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    """A web server starts threads whenever it likes, and PyTorch gives each the number that was set last."""
    seen: list[int] = []

    def begin_another(*_: object) -> None:
        time.sleep(0.05)
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()

    hook = model.encoder.register_forward_pre_hook(begin_another)
    predict(model, task, examples * 6, tokenizer, batch_size=2)
    hook.remove()
    assert set(seen) == {3}


def test_a_batch_has_fewer_features_where_each_has_many_rows(encoder: Bert) -> None:
    model = Model(encoder, {"choice": MultipleChoice(encoder.hidden_size)}).eval()
    rows = np.ones((8, 32), dtype=np.int64)
    features = [Feature(rows, 0 * rows, lengths=np.full(8, 32))] * 13
    seen: list[int] = []
    model.encoder.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].input_ids.numel()))
    outputs = run_features(model, features, 0, 64, "float32")
    assert len(outputs) == 13
    assert max(seen) <= 1024
    assert sum(seen) == 13 * 8 * 32


def test_bfloat16_is_near(
    model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    exact = predict(model, task, examples, tokenizer, precision="float32")
    rounded = predict(model, task, examples, tokenizer, precision="bfloat16")
    torch.testing.assert_close(numbers(rounded), numbers(exact), rtol=0, atol=0.1)


def test_examples_are_read_lazily(model: Model, task: TextClassificationTask, tokenizer: WordPiece) -> None:
    read: list[int] = []

    def endless() -> Iterator[TextExample]:
        while True:
            read.append(len(read))
            yield TextExample(str(len(read)), "seven wide rivers")

    answers = list(islice(stream(model, task, endless(), tokenizer, batch_size=2, precision="float32"), 100))
    assert len(answers) == 100
    assert len(read) <= 192  # two chunks of 64, and the one that is tokenized while the model computes


def test_no_examples_give_no_predictions(model: Model, task: TextClassificationTask, tokenizer: WordPiece) -> None:
    assert predict(model, task, [], tokenizer) == []


def test_dropout_is_off_and_the_training_mode_is_restored(
    model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    model.train()
    first = predict(model, task, examples, tokenizer, precision="float32")
    assert model.training
    assert predict(model, task, examples, tokenizer, precision="float32") == first


def test_a_number_is_on_the_scale_of_the_task(model: Model, tokenizer: WordPiece) -> None:
    plain = RegressionTask(name="files:n.csv", metric="pearson")
    scaled = replace(plain, numbers=replace(plain.numbers, origin=100.0, unit=7.0))
    regressor = Model(model.encoder, plain.objectives(model.encoder))
    example = TextExample("1", "seven wide rivers")
    (raw,) = predict(regressor, plain, [example], tokenizer, precision="float32")
    (shown,) = predict(regressor, scaled, [example], tokenizer, precision="float32")
    assert isinstance(raw.label, float)
    assert shown.label == pytest.approx(100 + 7 * raw.label)
    assert shown.scores == {}


def test_numbers_are_not_rounded_to_bfloat16(model: Model, examples: list[TextExample], tokenizer: WordPiece) -> None:
    task = RegressionTask(name="files:n.csv", metric="pearson", max_length=33)
    regressor = Model(model.encoder, task.objectives(model.encoder))
    values = [each.label for each in predict(regressor, task, examples, tokenizer, precision="bfloat16")]
    assert torch.tensor(values).bfloat16().tolist() != values


def test_weights_that_have_diverged_are_an_error(
    model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    with torch.no_grad():
        for parameter in model.objectives.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(BertkitError, match="not finite"):
        predict(model, task, examples, tokenizer)


def test_padding_is_counted_in_the_batches_that_are_computed() -> None:
    features = [Feature(np.ones(length, dtype=np.int64), np.zeros(length, dtype=np.int64)) for length in (3, 9, 9, 5)]
    choices = Feature(np.ones((3, 7), dtype=np.int64), np.zeros((3, 7), dtype=np.int64), lengths=np.array([7, 2, 4]))
    cpu = torch.device("cpu")
    assert count_padding(features, 2, cpu) == 5 - 3
    assert count_padding(features, 4, cpu) == 4 * 9 - 26
    assert count_padding([choices], 4, cpu) == 3 * 7 - 13
    assert count_padding([], 4, cpu) == 0
