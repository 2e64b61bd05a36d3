"""The official scores of SQuAD and KorQuAD: normalisation, reports by hand, missing predictions."""

from __future__ import annotations

import random

import pytest
from tests.clock import processor_seconds

from bertkit.metrics.squad import normalize, score_all, score_all_v2, score_answer

GOLD = {"a": ("in 1867", "1867"), "b": ("The Old Mill",), "c": (), "d": ()}


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The Old  Mill", "old mill"),
        ("a theatre in an Anthem", "theatre in anthem"),
        ("the-end", "theend"),
        ("U.S.A.", "usa"),
        ("A", ""),
        ("", ""),
        ("$1,000 (net)", "1000 net"),
        ("Ünïcode’s “quotes”", "ünïcode’s “quotes”"),
        ("tab\tand\u00a0no-break\nline", "tab and nobreak line"),
        ("An a the", ""),
        ("ÉTAT—État", "état—état"),
    ],
)
def test_normalisation_of_squad(text: str, normalized: str) -> None:
    assert normalize(text) == normalize(text, "v2") == normalized


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("《홍길동전》", "홍길동전"),
        ("‘나’는 the king", "나 는 the king"),
        ("세종(世宗)대왕", "세종 世宗 대왕"),
        ("1,392년", "1392년"),
        ('"KBS" 〈뉴스〉 <9>', "kbs 뉴스 9"),
    ],
)
def test_normalisation_of_korquad(text: str, normalized: str) -> None:
    assert normalize(text, "korquad") == normalized


def test_f1_counts_repeated_words() -> None:
    score = score_answer("the river and the river bank", ("river river mill",), "v1")
    assert score.exact == 0
    assert score.f1 == pytest.approx(2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3))


def test_the_best_gold_answer_counts() -> None:
    assert score_answer("in 1867", ("1867", "In 1867!"), "v1") == (1, 1)
    assert tuple(score_answer("1867", ("in 1867",), "v1")) == pytest.approx((0, 2 / 3))


def test_korean_f1_counts_characters() -> None:
    score = score_answer("세종 대왕은", ("세종대왕",), "korquad")
    assert tuple(score) == pytest.approx((0, 2 * (4 / 5) * 1 / (4 / 5 + 1)))


def test_answers_that_are_empty_after_normalisation() -> None:
    """1.1 gives "The" against "a" an exact match and no F1; 2.0 treats "a" as no answer."""
    assert score_answer("The", ("a",), "v1") == (1, 0)
    assert score_answer("The", ("a",), "v2") == (1, 1)
    assert score_answer("", ("a", "mill"), "v2") == (0, 0)
    assert score_answer("", (), "v2") == (1, 1)
    assert score_answer("mill", (), "v2") == (0, 0)
    assert score_answer("mill", (), "v1") == (0, 0)


def test_the_report_of_1_1() -> None:
    gold = {"a": GOLD["a"], "b": GOLD["b"], "e": ("stone",)}
    report = score_all(gold, {"a": "1867", "b": "old windmill", "elsewhere": "ignored"}, "v1")
    assert report == {"exact_match": pytest.approx(100 / 3), "f1": pytest.approx(100 * (1 + 0.5) / 3)}


def test_the_report_of_2_0() -> None:
    given = {"a": "1867", "b": "the old windmill", "c": "", "d": "something"}
    report = score_all_v2(GOLD, given)
    assert report == {
        "exact": 50,
        "f1": pytest.approx(62.5),
        "total": 4,
        "HasAns_exact": 50,
        "HasAns_f1": pytest.approx(75),
        "HasAns_total": 2,
        "NoAns_exact": 50,
        "NoAns_f1": 50,
        "NoAns_total": 2,
    }


def test_a_missing_prediction_is_wrong_also_for_unanswerable_questions() -> None:
    report = score_all_v2(GOLD, {"a": "1867", "c": "", "elsewhere": "x"}, {"a": 0.0, "c": 0.9})
    assert (report["exact"], report["total"], report["HasAns_exact"], report["NoAns_exact"]) == (50, 4, 50, 50)
    assert report["best_exact"] == 50


def test_no_answer_scores_above_the_threshold_remove_the_answer() -> None:
    given = {"a": "1867", "b": "old mill", "c": "x", "d": "y"}
    odds = {"a": -3.0, "b": 2.0, "c": -1.0, "d": 0.5}
    report = score_all_v2(GOLD, given, odds)
    assert (report["HasAns_exact"], report["NoAns_exact"]) == (50, 0), "b is above 1"
    assert (report["best_exact"], report["best_exact_thresh"]) == (75, -3.0)
    lower = score_all_v2(GOLD, given, odds, threshold=-2.0)
    assert (lower["exact"], lower["HasAns_exact"], lower["NoAns_exact"]) == (75, 50, 100)


@pytest.mark.parametrize("seed", range(7))
def test_no_threshold_is_better_than_the_best(seed: int) -> None:
    generator = random.Random(seed)
    gold = {str(place): ("old mill",) if generator.random() < 0.5 else () for place in range(37)}
    given = {id: generator.choice(["old mill", "mill", "river", ""]) for id in gold}
    odds = {id: generator.choice([-2.0, -1.5, 0.0, 0.3]) + generator.random() for id in gold}
    report = score_all_v2(gold, given, odds)
    tried = [score_all_v2(gold, given, odds, threshold=each) for each in (*odds.values(), -9.0)]
    for name in ("exact", "f1"):
        assert report[f"best_{name}"] == pytest.approx(max(each[name] for each in tried))
        threshold = report[f"best_{name}_thresh"]
        if threshold in odds.values():  # the official 0.0 means: answer no question
            assert score_all_v2(gold, given, odds, threshold)[name] == pytest.approx(report[f"best_{name}"])


def test_no_questions_score_nothing() -> None:
    assert score_all({}, {}, "v1") == {"exact_match": 0, "f1": 0}
    assert score_all_v2({}, {})["total"] == 0


def test_six_thousand_predictions_take_less_than_a_second() -> None:
    words = ["the", "old", "mill", "by", "a", "wide", "river", "(1867)", "ran", "slowly,", "past", "seven", "stones"]
    gold = {str(n): tuple(" ".join(words[n % 5 : n % 5 + k]) + f" {n}" for k in (2, 3, 5)) for n in range(6000)}
    given = {id: f"{texts[0]} {id}" for id, texts in gold.items()}
    assert processor_seconds(lambda: score_all_v2(gold, given, dict.fromkeys(gold, 0.5))) < 1
