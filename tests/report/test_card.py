"""Model cards: header for Hugging Face, sections, paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from bertkit.report.card import (
    Card,
    base_name,
    changed_settings,
    command_of,
    source_row,
    without_folders,
    write_card,
)
from bertkit.training.optimizer import OptimizerConfig

CARD = Card(
    title='files:my "best": reviews.csv',
    about="mini fine-tuned on 37 examples.",
    pipeline_tag="text-classification",
    score_columns=("dev", "accuracy"),
    scores=[("seed 0", 0.5), ("seed 1", 0.75)],
    values={"accuracy": 0.75, "macro_f1": 0.625},
    data=[("train: a|b.csv", 1234, "0" * 64)],
    command=["bertkit", "finetune", "/home/ann/my reviews.csv", "--model", "/srv/mini", "--set", "data=/srv/x"],
    settings=[("seeds", "2")],
    environment={"python": "3.11"},
    limits=["Measured on dev."],
    base="mini: a model",
)


def test_header_is_read_by_hugging_face(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(write_card(CARD), encoding="utf-8")
    card = huggingface_hub.ModelCard.load(tmp_path / "README.md").data
    assert (card.pipeline_tag, card.base_model) == (CARD.pipeline_tag, CARD.base)
    assert card.metrics == ["accuracy", "macro_f1"]
    assert card.model_name == CARD.title
    assert [(each.metric_type, each.metric_value) for each in card.eval_results] == list(CARD.values.items())
    assert "language" not in card.to_dict()


def test_card_has_scores_data_command_and_limits() -> None:
    text = write_card(CARD)
    for words in (CARD.about, "| seed 1 |   0.7500 |", "train: a\\|b.csv", "1,234", "0" * 64, "| seeds   |     2 |"):
        assert words in text
    assert "$ bertkit finetune 'my reviews.csv' --model mini --set data=x\n" in text
    assert "/home" not in text and "/srv" not in text
    assert text.endswith("- Measured on dev.\n")


def test_card_without_scores_or_settings() -> None:
    text = write_card(replace(CARD, scores=[], values={}, settings=[], pipeline_tag="", base=""))
    assert "None were measured." in text and "All settings are the defaults." in text
    assert not {"model-index", "pipeline_tag", "base_model"} & set(text.replace(":", " ").split())


def test_an_undefined_score_is_a_word_in_the_table_and_not_in_the_header() -> None:
    undefined = float("nan")
    text = write_card(replace(CARD, scores=[("seed 1", undefined)], values={"pearson": undefined, "f1": 0.5}))
    header, table = text.removeprefix("---\n").split("\n---\n")
    assert "undefined" in table and '"value": 0.5' in header and "NaN" not in header and "pearson" not in header
    assert "model-index" not in write_card(replace(CARD, values={"pearson": undefined}))


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/a/b.csv", "b.csv"),
        ("a/b.csv", "a/b.csv"),
        ("--x=/a/b", "--x=b"),
        ("/a/books=0.25", "books=0.25"),
        ("--mix=/a/b=1", "--mix=b=1"),
        ("lr=5e-5", "lr=5e-5"),
        ("", ""),
    ],
)
def test_folders_of_absolute_paths_are_left_out(word: str, written: str) -> None:
    assert without_folders(word) == written


def test_changed_settings_are_those_that_differ_from_the_defaults() -> None:
    default = OptimizerConfig()
    assert changed_settings(default, default) == []
    assert changed_settings(replace(default, lr=0.125, beta2=0.5), default) == [("lr", "0.125"), ("beta2", "0.5")]


@pytest.mark.parametrize(
    ("program", "name"),
    [("/usr/lib/bertkit/cli/main.py", "bertkit"), ("/x/__main__.py", "bertkit"), ("/x/train.py", "train.py")],
)
def test_command_names_the_program_without_its_folder(program: str, name: str) -> None:
    assert command_of({"command": [program, "finetune", "a.csv"]}) == [name, "finetune", "a.csv"]


def test_row_of_a_data_file() -> None:
    file = {"file": "a.csv", "bytes": 1234, "sha256": "0f" * 32}
    assert source_row(file, "train: ") == ("train: a.csv", 1234, "0f" * 32)


def test_base_model_is_named_after_its_run_or_folder(tmp_path: Path) -> None:
    assert base_name(tmp_path / "my-run" / "model") == "my-run"
    assert base_name(tmp_path / "bert-base-uncased") == "bert-base-uncased"
