"""Multiple choice: SWAG's files and the user's own tables, from cells to scores."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path

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
from bertkit.task_types.user_tables import guess
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


def write_csv(path: Path, header: Sequence[str], *rows: Sequence[object]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


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


def test_batches_of_mixed_numbers_of_choices_answer_as_each_alone(tokenizer: Tokenizer) -> None:
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
    whole = accumulate_gradients(model, [collate(features, pad_id=0)], counts, cpu, "float32")
    parts = accumulate_gradients(model, batches, counts, cpu, "float32")
    answers = predict(model, TASK, EXAMPLES, tokenizer, precision="float32")
    expected = -(math.log(answers[0].scores[1]) + math.log(answers[1].scores[0])) / 2
    assert whole["choice"] == pytest.approx(expected, rel=1e-5)
    assert parts["choice"] == pytest.approx(expected, rel=1e-5)


def test_gold_scores_perfectly_and_needs_labels() -> None:
    assert TASK.score(EXAMPLES[:2], choose([1, 0])) == {"accuracy": 1.0}
    assert TASK.score(EXAMPLES[:2], choose([0, 0])) == {"accuracy": 0.5}
    with pytest.raises(BertkitError, match="1 of 3 examples have no label"):
        TASK.score(EXAMPLES, choose([1, 0, 0]))


def test_an_answer_is_described_and_marked(tokenizer: Tokenizer) -> None:
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
    assert mark.error == pytest.approx(0.5)


def test_a_record_comes_back() -> None:
    assert from_record(json.loads(json.dumps(swag.record()))) == swag


def test_real_files_in_swags_columns(data_folder: Path, tokenizer: Tokenizer) -> None:
    task = swag.with_files(train=[data_folder / "swag/codah-train.csv"], dev=[data_folder / "swag/codah-val.csv"])
    train, dev = task.examples("train"), task.examples("dev")
    assert (len(train), len(dev)) == (1665, 556)
    assert dev[0] == ChoiceExample(
        "0",
        "The driver pulled up to a gas station.",
        (
            "found inner peace.",
            "walked inside and bought a lotto ticket.",
            "stuck around the gas pump for a while and had a smoke.",
            "asked the cashier to help him rob a bank.",
        ),
        "He",
        1,
    )
    assert len(predict(build_model(), task, dev[:7], tokenizer, precision="float32")) == 7
    found = guess(data_folder / "swag/codah-train.csv")
    assert found.sentence == (
        "prompt = sent1, beginning of the choices = sent2, choices = ending0 to ending3 (4 each), "
        "label = label (the number of the right one, counted from 0), id = fold-ind"
    )


@pytest.mark.parametrize(
    ("labels", "spelling"),
    [(("0", "2"), "number"), (("1", "3"), "number from 1"), (("A", "C"), "letter"), (("red", "hue"), "text")],
)
def test_how_the_right_one_is_written_is_guessed(tmp_path: Path, labels: tuple[str, str], spelling: str) -> None:
    rows = [("which?", "red", "green", "blue", labels[0]), ("and now?", "dye", "ink", "hue", labels[1])]
    found = guess(write_csv(tmp_path / "t.csv", ["question", "A", "B", "C", "answer"], *rows))
    assert isinstance(found.task, MultipleChoiceTask)
    assert found.task.spelling == spelling
    assert [example.label for example in found.task.reader.rows("train")] == [0, 2]


def test_json_lists_may_differ_in_length(tmp_path: Path) -> None:
    records = [{"prompt": "p", "choices": ["a", "b"], "label": 0}, {"prompt": "q", "choices": list("abc"), "label": 2}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    found = guess(tmp_path / "t.jsonl")
    assert "choices = choices (2 to 3 each)" in found.sentence
    assert [(each.choices, each.label) for each in found.task.reader.rows("train")] == [
        (("a", "b"), 0),
        (("a", "b", "c"), 2),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("p", "a", "b", "4"), r't\.csv, line 3: label "4" is none of the 2 choices, 0 to 1'),
        (("p", "a", "b", "-1"), r't\.csv, line 3: label "-1" is none of the 2 choices'),
        (("p", "a", " ", "0"), r"t\.csv, line 3: choice 1 of 0 to 1 is empty"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(tmp_path: Path, row: Sequence[str], message: str) -> None:
    path = write_csv(tmp_path / "t.csv", ["prompt", "choice0", "choice1", "label"], ("o", "a", "b", "0"), row)
    with pytest.raises(BertkitError, match=message):
        guess(path)


def test_repeated_ids_are_counted_and_every_row_counts(tmp_path: Path) -> None:
    rows = [("a", "p", "x", "y", "0"), ("a", "q", "x", "y", "1"), ("b", "r", "x", "y", "0")]
    path = write_csv(tmp_path / "t.csv", ["id", "prompt", "A", "B", "label"], *rows)
    task = guess(path, dev=path).task
    sentence = 'occur more than once (the first is "a"), 1 of them with different labels; every row counts'
    assert [f"1 ids of {split} {sentence}" in task.reader.notes() for split in ("train", "dev")] == [True, True]
    assert len(task.examples("dev")) == 3
    assert task.score(task.examples("dev"), choose([0, 1, 1])) == {"accuracy": pytest.approx(2 / 3)}


def test_a_file_to_be_scored_needs_no_ids(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "t.csv", ["id", "prompt", "A", "B", "label"], ("a", "p", "x", "y", "0"))
    dev = write_csv(tmp_path / "dev.csv", ["prompt", "A", "B", "label"], ("q", "x", "y", "1"))
    assert guess(train).task.with_files(dev=[dev]).examples("dev") == [ChoiceExample("2", "q", ("x", "y"), label=1)]


def test_one_choice_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"prompt": "p", "choices": ["a"], "label": 0}\n', encoding="utf-8")
    with pytest.raises(BertkitError, match=r"t\.jsonl, line 1: 1 choice; there must be at least two"):
        guess(path)


def test_new_input_needs_no_label(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", ["sent1", "sent2", *swag.choices], ("p", "s", *"abcd"))
    assert list(swag.reader.read(path)) == [ChoiceExample("2", "p", tuple("abcd"), "s")]
    assert swag.reader.read_line("7", "p\tx\ty") == ChoiceExample("7", "p", ("x", "y"))
