"""Pairs of a user, guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_types import Prediction
from bertkit.task_types.similarity import SimilarityTask
from bertkit.user_tables.guess import guess


def guessed(train: Path, dev: Path | None = None, **columns: str) -> tuple[SimilarityTask, str]:
    found = guess(train, dev=dev, kind="similarity", **columns)  # type: ignore[arg-type]
    assert isinstance(found.task, SimilarityTask)
    return found.task, found.sentence


def table(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_scores_are_scaled_to_0_to_1(tmp_path: Path) -> None:
    rows = [f"a river {row},a stream {row},{row % 5 + 1}" for row in range(40)]
    task, sentence = guessed(table(tmp_path / "p.csv", "sentence1,sentence2,score", rows))
    assert (task.training, task.metric, task.heldout) == ("scores", "spearman", 0.1)
    assert (task.numbers.origin, task.numbers.unit) == (1.0, 4.0)
    assert sentence == "text = sentence1, pair = sentence2, score = score (from 1 to 5)"
    assert len(task.examples("train")) + len(task.examples("dev")) == 40


def test_pairs_without_a_score_belong_together_and_dev_gets_negatives(tmp_path: Path) -> None:
    rows = [f"what is {row},an answer of {row}" for row in range(40)]
    task, sentence = guessed(table(tmp_path / "p.csv", "question,answer", rows))
    assert (task.training, task.metric) == ("pairs", "roc_auc")
    assert "no score, so that the two texts of a row belong together" in sentence
    train, dev = task.examples("train"), task.examples("dev")
    assert {example.label for example in train} == {1.0}
    assert [example.label for example in dev] == [1.0, 0.0] * (len(dev) // 2)
    assert len(train) + len(dev) // 2 == 40


def test_a_dev_file_may_have_scores_and_other_columns(tmp_path: Path) -> None:
    train = table(tmp_path / "p.csv", "question,answer", [f"what is {row},an answer of {row}" for row in range(40)])
    dev = table(tmp_path / "d.csv", "text_a,text_b,score", [f"one {row},two {row},{row}" for row in range(7)])
    task, _ = guessed(train, dev)
    assert (task.training, task.metric) == ("pairs", "spearman")
    assert [example.label for example in task.examples("dev")] == [float(row) for row in range(7)]
    assert (task.numbers.origin, task.numbers.unit) == (0, 6)
    example = task.examples("dev")[6]
    assert task.report(example, Prediction(1.0)).error == 0, "a cosine of 1 is the highest score"


def test_two_columns_of_any_name_beside_a_score_are_the_texts(tmp_path: Path) -> None:
    rows = [f"a river {row},a stream {row},{row % 5 + 1}" for row in range(40)]
    _, sentence = guessed(table(tmp_path / "p.csv", "a,b,score", rows))
    assert sentence == "text = b, pair = a, score = score (from 1 to 5)"


def test_the_only_column_of_numbers_is_the_score_whatever_its_name(tmp_path: Path) -> None:
    rows = [f"{row},a river {row},a stream {row},{row % 9 / 2 + 1}" for row in range(40)]
    task, sentence = guessed(table(tmp_path / "p.csv", "pair_ID,sentence_A,sentence_B,relatedness", rows))
    assert task.training == "scores"
    assert sentence == ("text = sentence_A, pair = sentence_B, score = relatedness (from 1 to 5); not read: pair_ID")
    other = table(tmp_path / "other.csv", "sentence_A,sentence_B,relatedness", ["a,b,0.5", "c,d,2.5"])
    assert [example.label for example in task.with_files(dev=[other]).examples("dev")] == [0.5, 2.5]


def test_a_score_with_a_decimal_comma_is_not_left_out(tmp_path: Path) -> None:
    rows = [f"a mill {row};a hill {row};{row % 5},25" for row in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["satz1;satz2;punktzahl", *rows]))
    with pytest.raises(BertkitError, match=r'"punktzahl", such as 0,25, look like numbers with a comma'):
        guess(tmp_path / "t.csv", kind="similarity")


def test_one_number_with_a_comma_among_remarks_is_no_score(tmp_path: Path) -> None:
    rows = [f"a mill {row};a hill {row};{'1,5' if row == 7 else 'none'}" for row in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["text;pair;remark", *rows]))
    assert "no score" in guess(tmp_path / "t.csv", kind="similarity").sentence


def test_two_columns_of_any_name_are_the_texts(tmp_path: Path) -> None:
    task, _ = guessed(
        table(tmp_path / "p.csv", "left,right", [f"what is {row},an answer of {row}" for row in range(40)])
    )
    columns = task.files.splits["train"].columns
    assert {columns.first, columns.second} == {"left", "right"}


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("a,b,c", ["a river,a stream,a mill"] * 3, "which column is the second text"),
        ("text_a,text_b,score", ["x,y,high", "x,y,low"], r'p\.csv, line 2: "high" is not a number'),
        ("text_a,text_b,score", ["x,y,3", "x,z,3"], "all scores are 3"),
        ("text_a,text_b,score", ["x,y,3", "x,z,1e150"], r"p\.csv, line 3: 1e150 is too large"),
        ("text_a,text_b,one,two", ["x,y,3,1", "x,z,3,1"], "the score of two texts may be one or two"),
    ],
)
def test_tables_that_are_not_pairs_are_errors(tmp_path: Path, header: str, rows: list[str], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        guessed(table(tmp_path / "p.csv", header, rows))
