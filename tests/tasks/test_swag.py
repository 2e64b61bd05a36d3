"""SWAG, on real files in its columns."""

from __future__ import annotations

from pathlib import Path

from bertkit.contracts import Tokenizer
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.inference.predict import predict
from bertkit.model import Model
from bertkit.task_types import ChoiceExample, MultipleChoiceTask
from bertkit.tasks.swag import swag
from bertkit.user_tables.guess import guess

TASK = MultipleChoiceTask(name="files:t.csv", choices=("A", "B"))


def build_model() -> Model:
    shape = BertConfig(vocab_size=99, hidden_size=28, num_layers=1, num_heads=4, intermediate_size=37, max_positions=41)
    encoder = Bert(shape)
    return Model(encoder, TASK.objectives(encoder)).eval()


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
        "label = label (the number of the right one, counted from 0), id = fold-ind; not read: index, video-id, "
        "startphrase, gold-source"
    )
