"""Multiple choice: SWAG's files and the user's own tables, from cells to scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.inference.predict import predict
from bertkit.model import Model
from bertkit.task_types import Choice, ChoiceExample, MultipleChoiceTask, from_record
from bertkit.tasks.swag import swag
from bertkit.training.fit import accumulate_gradients, count_labels

EXAMPLES = [
    ChoiceExample("a", "the old mill", ("ran", "stopped at dawn", "sang"), "it", 1),
    ChoiceExample("b", "seven wide rivers", ("met", "flew past the stone mill"), label=0),
    ChoiceExample("c", "no gold", ("one", "two", "three", "four", "five")),
]


TASK = MultipleChoiceTask(name="files:t.csv", choices=("A", "B"))


def build_model() -> Model:
    shape = BertConfig(vocab_size=99, hidden_size=28, num_layers=1, num_heads=4, intermediate_size=37, max_positions=41)
    encoder = Bert(shape)
    return Model(encoder, TASK.objectives(encoder)).eval()


def test_the_row_of_a_choice_may_be_pooled(tokenizer: Tokenizer) -> None:
    encoder = build_model().encoder
    task = replace(TASK, pooling="mean")
    model = Model(encoder, task.objectives(encoder)).eval()
    (chosen,) = predict(model, from_record(task.record()), EXAMPLES[:1], tokenizer, batch_size=1, precision="float32")
    assert len(chosen.scores) == 3


def test_the_label_is_written_as_in_the_files() -> None:
    chosen, example = Choice(1, "flew past", (0.1, 0.9)), EXAMPLES[1]
    written = {
        spelling: replace(TASK, spelling=spelling).describe(example, chosen)["label"]
        for spelling in ("number", "number from 1", "letter", "text")
    }
    assert written == {"number": 1, "number from 1": 2, "letter": "B", "text": example.choices[1]}


def choose(labels: list[int]) -> list[Choice]:
    return [Choice(label, "", (1.0,)) for label in labels]


def test_a_feature_has_a_row_for_each_choice(tokenizer: Tokenizer) -> None:
    (feature,) = TASK.encode(EXAMPLES[0], tokenizer)
    assert feature.lengths is not None
    assert feature.lengths.tolist() == [3 + 3 + 2, 3 + 3 + 4, 3 + 3 + 2]
    assert feature.input_ids.shape == (3, len(feature)) == (3, 10)
    ids = [*tokenizer.encode("the old mill").ids, tokenizer.sep_id, *tokenizer.encode("it sang").ids]
    assert feature.input_ids[2].tolist() == [tokenizer.cls_id, *ids, tokenizer.sep_id, 0, 0]
    assert feature.segment_ids[2].tolist() == [0] * 5 + [1] * 3 + [0] * 2


def test_examples_with_different_numbers_of_choices_share_a_batch(tokenizer: Tokenizer) -> None:
    model = build_model()
    batch = collate([feature for each in EXAMPLES for feature in TASK.encode(each, tokenizer)], pad_id=0)
    assert batch.input_ids.shape == (10, 11)
    assert batch.labels["choice"].tolist() == [1, 0, IGNORE]
    together = predict(model, TASK, EXAMPLES, tokenizer, batch_size=3, precision="float32")
    for example, choice in zip(EXAMPLES, together, strict=True):
        (alone,) = predict(model, TASK, [example], tokenizer, batch_size=1, precision="float32")
        assert choice.scores == pytest.approx(alone.scores, abs=1e-5)
        assert len(choice.scores) == len(example.choices)
        assert sum(choice.scores) == pytest.approx(1)


def test_the_loss_is_the_mean_over_examples_whatever_the_micro_batches(tokenizer: Tokenizer) -> None:
    model = build_model()
    features = [feature for each in EXAMPLES for feature in TASK.encode(each, tokenizer)]
    batches = [collate([each], pad_id=0) for each in features]
    counts, cpu = count_labels(model, batches), torch.device("cpu")
    _, whole = accumulate_gradients(model, [collate(features, pad_id=0)], counts, cpu, "float32")
    _, parts = accumulate_gradients(model, batches, counts, cpu, "float32")
    answers = predict(model, TASK, EXAMPLES, tokenizer, precision="float32")
    expected = -(math.log(answers[0].scores[1]) + math.log(answers[1].scores[0])) / 2
    assert whole["choice"] == pytest.approx(expected, rel=1e-5)
    assert parts["choice"] == pytest.approx(expected, rel=1e-5)


def test_gold_scores_perfectly_and_needs_labels() -> None:
    assert TASK.score(EXAMPLES[:2], choose([1, 0])) == {"accuracy": 1.0}
    assert TASK.score(EXAMPLES[:2], choose([0, 0])) == {"accuracy": 0.5}
    with pytest.raises(BertkitError, match="1 of 3 examples has no label"):
        TASK.score(EXAMPLES, choose([1, 0, 0]))


def test_a_choice_is_described_and_reported(tokenizer: Tokenizer) -> None:
    (feature,) = TASK.encode(EXAMPLES[0], tokenizer)
    logits = np.array([0.0, math.log(3), math.log(4), 9.0])
    answer = TASK.decode(EXAMPLES[0], [feature], [{"logits": logits}])
    assert TASK.describe(EXAMPLES[0], answer) == {
        "id": "a",
        "label": 2,
        "choice": "sang",
        "probability": 0.5,
        "scores": [0.125, 0.375, 0.5],
    }
    mark = TASK.report(EXAMPLES[0], answer)
    assert (mark.gold, mark.answer) == ("stopped at dawn", "sang")
    assert mark.words == len(mark.text.replace("|", "").split())
    assert mark.error == pytest.approx(0.5)


def test_a_record_comes_back() -> None:
    assert from_record(json.loads(json.dumps(swag.record()))) == swag
