"""GLUE's real files where they are given, and what is special about each task."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_types import Prediction, TextClassificationTask, TextExample
from bertkit.tasks import glue

pytestmark = pytest.mark.usefixtures("without_shape_checks")

ROWS = {
    "cola": {"train": 8551, "dev": 1043, "test": 1063},
    "sst2": {"train": 67349, "dev": 872, "test": 1821},
    "mrpc": {"train": 3668, "dev": 408, "test": 1725},
    "stsb": {"train": 5749, "dev": 1500, "test": 1379},
    "rte": {"train": 2490, "dev": 277, "test": 3000},
    "wnli": {"train": 635, "dev": 71, "test": 146},
    "qnli": {"train": 17460, "dev": 5463, "test": 5463},
    "qqp": {"train": 20997, "dev": 2500},
    "mnli": {"train": 2343, "dev": 3815, "dev_mismatched": 3908},
}


"""Rows of the files in the data folder; QNLI's train, QQP and MNLI are smaller there than in GLUE."""


@pytest.mark.parametrize("name", ROWS)
def test_real_files_have_all_their_rows(name: str, data_folder: Path) -> None:
    task: TextClassificationTask = getattr(glue, name).at(data_folder / getattr(glue, name).files.home)
    for split, rows in ROWS[name].items():
        examples = task.examples(split)
        assert len(examples) == rows
        assert all(example.first.strip() for example in examples)
        labelled = split != "test"
        assert all((example.label is not None) == labelled for example in examples)
        if labelled and task.labels:
            assert {example.label for example in examples} == set(task.labels)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cola", TextExample("1", "The sailors rode the breeze clear of the rocks.", None, "acceptable")),
        ("sst2", TextExample("2", "it 's a charming and often affecting journey . ", None, "positive")),
        ("stsb", TextExample("2", "A man with a hard hat is dancing.", "A man wearing a hard hat is dancing.", 5.0)),
        (
            "mrpc",
            TextExample(
                "2",
                "He said the foodservice pie business doesn 't fit the company 's long-term growth strategy .",
                '" The foodservice pie business does not fit our long-term growth strategy .',
                "equivalent",
            ),
        ),
    ],
)
def test_the_first_dev_row_is_read_to_the_letter(name: str, expected: TextExample, data_folder: Path) -> None:
    task: TextClassificationTask = getattr(glue, name).at(data_folder / getattr(glue, name).files.home)
    assert task.examples("dev")[0] == expected


def test_test_rows_keep_their_index(data_folder: Path) -> None:
    examples = glue.sst2.at(data_folder / "glue/SST-2").examples("test")
    assert [example.id for example in examples[:3]] == ["0", "1", "2"]


def test_texts_shared_by_train_and_dev_are_counted(data_folder: Path) -> None:
    notes = glue.cola.at(data_folder / "glue/CoLA").reader.notes()
    assert "16 of 1,043 dev examples have a text that is also in train, so the scores are too high" in notes


@pytest.mark.parametrize(
    ("task", "scores"),
    [
        (glue.cola, ["matthews", "accuracy"]),
        (glue.sst2, ["accuracy"]),
        (glue.mrpc, ["f1", "accuracy"]),
        (glue.qqp, ["f1", "accuracy"]),
        (glue.stsb, ["spearman", "pearson"]),
        (glue.rte, ["accuracy"]),
    ],
)
def test_scores_are_those_of_the_paper(task: TextClassificationTask, scores: list[str]) -> None:
    assert [task.metric, *task.also] == scores


def test_f1_of_mrpc_is_that_of_the_paraphrases() -> None:
    gold = ["equivalent", "equivalent", "not_equivalent", "equivalent"]
    answers = ["equivalent", "not_equivalent", "equivalent", "equivalent"]
    examples = [TextExample(str(place), "a", "b", label) for place, label in enumerate(gold)]
    scores = glue.mrpc.score(examples, [Prediction(label) for label in answers])
    assert scores == {"f1": pytest.approx(2 / 3), "accuracy": 0.5}


def test_a_similarity_above_5_is_an_error(tmp_path: Path) -> None:
    text = "sentence1\tsentence2\tscore\na\tb\t4.5\nc\td\t5.5\n"
    (tmp_path / "train.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(BertkitError, match=r"train.tsv, line 3: 5.5 is outside 0.0 to 5.0"):
        glue.stsb.at(tmp_path).examples("train")


def test_broken_rows_of_qqp_are_left_out_and_counted(tmp_path: Path) -> None:
    names = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    text = names + "1\t2\t3\tWhy?\tWhy not?\t0\n2\t4\t5\tWhat\nnow?\tAnd then?\t1\n"
    for file in ("train.tsv", "dev.tsv"):
        (tmp_path / file).write_text(text, encoding="utf-8")
    task = glue.qqp.at(tmp_path)
    assert [example.first for example in task.examples("train")] == ["Why?"]
    assert "2 broken rows of train are left out" in task.reader.notes()
