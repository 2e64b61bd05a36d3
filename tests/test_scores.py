"""Which score is better, and undefined ones: a word for people, null for machines, never the best."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from bertkit.config.records import from_plain, to_plain
from bertkit.errors import BertkitError
from bertkit.escaping import to_json
from bertkit.scores import (
    UNDEFINED,
    Score,
    are_shares,
    format_score,
    format_scores,
    gain_of,
    is_defined,
    is_perfect,
    kind_of,
    rank_score,
    summarize_scores,
)
from bertkit.storage.atomic import write_json
from bertkit.storage.checksums import encode_checked, read_record


def test_an_undefined_score_is_a_word_and_never_the_best() -> None:
    assert [format_score(0.5), format_score(-0.12345), format_score(UNDEFINED)] == ["0.5000", "-0.1235", "undefined"]
    assert format_scores({"pearson": 0.5, "spearman": UNDEFINED}) == "pearson 0.5000, spearman undefined"
    assert max([-0.9, UNDEFINED, 0.1, UNDEFINED], key=lambda score: rank_score("pearson", score)) == 0.1
    assert is_defined(0.0) and not is_defined(UNDEFINED)


def test_of_an_error_less_is_better() -> None:
    errors = [2.5, UNDEFINED, 0.5, 9.0]
    assert max(errors, key=lambda score: rank_score("mean_absolute_error", score)) == 0.5
    assert gain_of("mean_absolute_error", 0.5, 2.5) == 2.0 and gain_of("accuracy", 0.5, 0.75) == -0.25
    assert summarize_scores("mean_absolute_error", [2.5, 0.5]).best == 0.5
    assert is_perfect("mean_absolute_error", 0.0) and not is_perfect("mean_absolute_error", 1.0)
    assert is_perfect("accuracy", 1.0) and not is_perfect("accuracy", 0.0)
    assert not are_shares("mean_absolute_error", 0.5) and are_shares("accuracy", 0.5)


def test_a_score_of_a_task_of_ones_own_is_a_share_unless_it_is_out_of_bounds() -> None:
    assert kind_of("top_5_accuracy").title == "top 5 accuracy"
    assert are_shares("top_5_accuracy", 0.5) and not are_shares("top_5_accuracy", 5.0)


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (0.0, "0.0000"),
        (0.5, "0.5000"),
        (0.0005, "0.0005"),
        (-0.00031, "-0.00031"),
        (3.21e-10, "3.2e-10"),
        (1234567.0, "1234567.0000"),
        (1.5e39, "1.5e+39"),
    ],
)
def test_an_error_of_any_size_can_be_read(score: float, shown: str) -> None:
    assert format_score(score) == shown


def test_standard_deviation_is_that_of_a_sample() -> None:
    summary = summarize_scores("accuracy", [0.7, 0.8, 0.9])
    assert summary.mean == pytest.approx(0.8)
    assert summary.sd == pytest.approx(0.1)
    assert (summary.best, summary.count) == (0.9, 3)
    assert str(summary) == "0.8000 ± 0.1000 (best 0.9000 of 3)"


def test_one_score_has_no_deviation() -> None:
    assert summarize_scores("accuracy", [0.5]).sd is None
    assert str(summarize_scores("accuracy", [0.5])) == "0.5000"


@dataclass(frozen=True, kw_only=True)
class Found:
    mean: Score
    sd: float | None
    epochs: list[dict[str, Score]]


def test_an_undefined_score_is_null_in_json_and_survives_being_read() -> None:
    text = json.dumps(to_plain(Found(mean=UNDEFINED, sd=None, epochs=[{"a": 0.5, "b": UNDEFINED}])))
    assert text == '{"mean": null, "sd": null, "epochs": [{"a": 0.5, "b": null}]}'
    found = from_plain(Found, json.loads(text))
    assert math.isnan(found.mean) and found.sd is None
    assert found.epochs[0]["a"] == 0.5 and math.isnan(found.epochs[0]["b"])


def test_null_is_an_error_where_a_number_is_no_score() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Setting:
        lr: float

    with pytest.raises(BertkitError, match="float"):
        from_plain(Setting, {"lr": None})


def test_nan_is_never_written_as_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"score": UNDEFINED})
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_checked({"score": UNDEFINED})
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"score": UNDEFINED})
    (tmp_path / "b.json").write_text(encode_checked({"score": 1.5}).replace("1.5", "1e999"), encoding="utf-8")
    with pytest.raises(BertkitError, match=r"b\.json is damaged"):
        read_record(tmp_path / "b.json")
