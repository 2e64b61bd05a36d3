from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bertkit.encoders import bert, gpt
from bertkit.errors import BertkitError
from bertkit.finetuning.baselines import read_extra_dev
from bertkit.objectives.contrastive import ContrastiveSimilarity
from bertkit.task_types import RegressionTask, TextExample, from_record
from bertkit.task_types.regression import Numbers
from bertkit.task_types.similarity import TFIDF_COSINE, SimilarityTask, add_negatives, as_similarity
from bertkit.task_types.text_task import Prediction
from bertkit.tasks.glue import sst2, stsb
from bertkit.text.wordpiece import WordPiece
from bertkit.user_tables.guess import guess

PAIRS = [TextExample(str(row), f"first {row}", f"second {row}", 1.0) for row in range(3)]


def test_each_text_is_a_row_of_its_own_and_the_score_is_scaled(tokenizer: WordPiece) -> None:
    task = SimilarityTask(name="t", numbers=Numbers(origin=1, unit=4), max_length=7)
    example = TextExample("7", "the river", "a very long text of many words", 3.0)
    (feature,) = task.encode(example, tokenizer)
    assert feature.lengths is not None
    assert feature.lengths.tolist() == [4, 7]
    assert feature.labels == {"similarity": 0.5}
    assert feature.num_truncated == 2
    assert not feature.segment_ids.any()
    with pytest.raises(BertkitError, match="is two texts; example 8 has one"):
        task.encode(TextExample("8", "one"), tokenizer)


def test_the_prediction_is_the_cosine(tokenizer: WordPiece) -> None:
    task = SimilarityTask(name="t")
    prediction = task.decode(PAIRS[0], task.encode(PAIRS[0], tokenizer), [{"cosine": np.array(0.25)}])
    assert prediction == Prediction(0.25)
    assert task.describe(PAIRS[0], prediction) == {"id": "0", "label": 0.25}


def test_scores_are_ranked_and_pairs_without_scores_get_negatives() -> None:
    examples = [TextExample(str(row), "a", "b", score) for row, score in enumerate([0.0, 2.5, 5.0])]
    predictions = [Prediction(0.1), Prediction(0.4), Prediction(0.3)]
    assert SimilarityTask(name="t").score(examples, predictions) == {
        "spearman": pytest.approx(0.5),
        "pearson": pytest.approx(0.6546, abs=1e-4),
    }
    with_negatives = add_negatives(PAIRS)
    assert [(each.first, each.second, each.label) for each in with_negatives] == [
        ("first 0", "second 0", 1.0),
        ("first 0", "second 1", 0.0),
        ("first 1", "second 1", 1.0),
        ("first 1", "second 2", 0.0),
        ("first 2", "second 2", 1.0),
        ("first 2", "second 0", 0.0),
    ]
    cosines = [Prediction(0.9), Prediction(0.5), Prediction(0.8), Prediction(0.1), Prediction(0.2), Prediction(0.0)]
    assert SimilarityTask(name="t", metric="roc_auc").score(with_negatives, cosines) == {
        "roc_auc": pytest.approx(8 / 9)
    }


def test_no_second_text_of_its_own_is_a_negative() -> None:
    own = [TextExample(str(row), "q1", f"a{row}", 1.0) for row in range(2)]
    other = TextExample("2", "q2", "a2", 1.0)
    negatives = [each for each in add_negatives([*own, other]) if each.label == 0.0]
    assert [(each.first, each.second) for each in negatives] == [("q1", "a2"), ("q1", "a2"), ("q2", "a0")]
    assert add_negatives(own) == own


def test_the_head_has_no_weights_and_takes_the_pooling() -> None:
    (head,) = (
        SimilarityTask(name="t", pooling="cls", training="pairs", temperature=0.1).objectives(bert.tiny()).values()
    )
    assert isinstance(head, ContrastiveSimilarity)
    assert (head.pooling, head.temperature) == ("cls", 0.1)
    assert not list(head.parameters())
    (scored,) = SimilarityTask(name="t").objectives(bert.tiny()).values()
    assert isinstance(scored, ContrastiveSimilarity)
    assert scored.temperature is None


def test_the_first_token_of_a_left_to_right_model_is_no_vector_of_the_text() -> None:
    with pytest.raises(BertkitError, match="pooling is cls, and the first token of a left-to-right model"):
        SimilarityTask(name="t", pooling="cls").objectives(gpt.tiny())


def test_the_baseline_is_a_cosine_of_words_in_common() -> None:
    (baseline,) = [SimilarityTask(name="t").baselines()[TFIDF_COSINE]]
    dev = [TextExample("0", "the old mill", "the old mill", 1.0), TextExample("1", "the old mill", "zzz", 0.0)]
    same, other = baseline(PAIRS, dev)
    assert same.label == pytest.approx(1.0)
    assert other.label == pytest.approx(0.0)


def test_a_task_comes_back_from_its_record() -> None:
    task = SimilarityTask(name="t", pooling="max", training="pairs", metric="roc_auc")
    assert from_record(task.record()) == task


def test_a_task_on_scored_pairs_has_a_twin_with_vectors() -> None:
    twin = as_similarity(stsb)
    assert (twin.numbers.origin, twin.numbers.unit) == (0.0, 5.0)
    assert twin.files == stsb.files
    for other in (sst2, RegressionTask(name="t", metric="pearson")):
        with pytest.raises(BertkitError, match="has no scores of pairs of texts"):
            as_similarity(other)


def test_unknown_settings_are_errors() -> None:
    with pytest.raises(BertkitError, match=r"metric is f1; the scores of .* are spearman, roc_auc"):
        SimilarityTask(name="t", metric="f1")
    with pytest.raises(BertkitError, match="temperature"):
        SimilarityTask(name="t", temperature=0.0)


def test_the_text_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="does not exist"):
        list(SimilarityTask(name="t").reader.read(tmp_path / "none.csv"))


def test_an_evaluation_shows_the_error_on_the_scale_of_the_cosine() -> None:
    task = SimilarityTask(name="pairs", numbers=Numbers(origin=0.0, unit=5.0))
    report = task.report(TextExample("1", "a mill", "a wheel", 5.0), Prediction(0.75))
    assert (report.gold, report.answer) == ("5", "0.75")
    assert report.error == pytest.approx(0.25)


def test_scores_of_other_files_are_read_by_a_task_that_was_trained_on_pairs(tmp_path: Path) -> None:
    train, other = tmp_path / "train.csv", tmp_path / "other.csv"
    train.write_text("question,answer\n" + "".join(f"what is {row},the mill {row}\n" for row in range(9)))
    other.write_text("question,answer,score\n" + "".join(f"what is {row},the mill {row},{row}\n" for row in range(5)))
    task = guess(train, kind="similarity").task
    assert task.metric == "roc_auc"
    scored = task.with_files(dev=[other])
    assert [example.label for example in scored.examples("dev")] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert scored.metric == "spearman"
    again = task.with_files(dev=[train])
    assert (again.metric, len(again.examples("dev"))) == ("roc_auc", 18)


def test_every_dev_set_of_pairs_has_negatives_however_much_of_it_is_used(tmp_path: Path) -> None:
    for split, place in (("train", 0), ("dev", 9), ("dev_other", 19)):
        rows = "".join(f"first {row},second {row}\n" for row in range(place, place + 8))
        (tmp_path / f"{split}.csv").write_text(f"a,b\n{rows}")
    task = guess(tmp_path / "train.csv", dev=tmp_path / "dev.csv", text="a", pair="b", kind="similarity").task
    task = task.with_files(dev_other=[tmp_path / "dev_other.csv"])
    assert [each.label for each in task.examples("dev")[:4]] == [1.0, 0.0, 1.0, 0.0]
    assert [each.label for each in read_extra_dev(task, 3)["dev_other"]] == [1.0, 0.0, 1.0]


def test_scores_are_not_taken_for_pairs_that_belong_together(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,score\n" + "".join(f"a {row},b {row},{row / 9}\n" for row in range(9)))
    task = guess(tmp_path / "t.csv", dev=tmp_path / "t.csv", text="a", pair="b", kind="similarity").task
    assert isinstance(task, SimilarityTask) and task.training == "scores"
    with pytest.raises(BertkitError, match="those to train on have a score each"):
        replace(task, training="pairs").examples("train")


def test_a_score_that_is_scaled_to_the_number_of_no_label_is_trained(tokenizer: WordPiece) -> None:
    (feature,) = SimilarityTask(name="t").encode(TextExample("1", "a", "b", -100.0), tokenizer)
    assert feature.labels["similarity"] == pytest.approx(-100)
    assert feature.labels["similarity"] != -100
