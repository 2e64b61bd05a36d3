"""Features of texts: cut, or in windows."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.config.settings import apply, parse_settings
from bertkit.contracts import Tokenizer
from bertkit.errors import BertkitError
from bertkit.task_types import TextClassificationTask, TextExample
from bertkit.text import byte_bpe

REVIEWS = TextClassificationTask(name="reviews", metric="accuracy", labels=("bad", "good", "odd"), max_length=13)


PAIRS = TextClassificationTask(name="pairs", metric="accuracy", labels=("yes", "no"), pair=True, max_length=13)


def words(count: int, name: str = "word") -> str:
    return " ".join(f"{name}{place}" for place in range(count))


def test_truncated_tokens_are_counted(tokenizer: Tokenizer) -> None:
    (feature,) = REVIEWS.encode(TextExample("1", words(30)), tokenizer)
    assert (len(feature), feature.num_truncated) == (13, 30 - 11)
    (pair,) = PAIRS.encode(TextExample("1", words(30), words(4)), tokenizer)
    assert (len(pair), pair.num_truncated) == (13, 34 - 10)
    (fits,) = REVIEWS.encode(TextExample("1", words(11)), tokenizer)
    assert fits.num_truncated == 0


@pytest.mark.parametrize("count", [1, 11, 12, 13, 30, 99])
@pytest.mark.parametrize("stride", [1, 7, 11])
def test_windows_hold_every_token(count: int, stride: int, tokenizer: Tokenizer) -> None:
    task = apply(REVIEWS, parse_settings([f"stride={stride}"]))
    features = task.encode(TextExample("1", words(count), None, "odd"), tokenizer)
    places = [np.asarray(feature.offsets)[1:-1] for feature in features]
    seen = {tuple(place) for each in places for place in each}
    assert seen == set(tokenizer.encode(words(count)).offsets)
    assert all(
        len(feature) <= 13 and feature.labels["class"] == 2 and not feature.num_truncated for feature in features
    )
    assert len(features) == (1 if count <= 11 else -(-(count - 11) // stride) + 1)


@pytest.mark.parametrize(("first", "second", "cut"), [(30, 3, 0), (3, 30, 0), (30, 20, 15), (7, 8, 2), (5, 5, 0)])
def test_windows_of_a_pair_run_over_the_longer_text(first: int, second: int, cut: int, tokenizer: Tokenizer) -> None:
    task = apply(PAIRS, parse_settings(["stride=5"]))
    texts = (words(first, "one"), words(second, "two"))
    features = task.encode(TextExample("1", *texts), tokenizer)
    assert sum(feature.num_truncated for feature in features) == cut
    longer = int(second > first)
    seen = set()
    for feature in features:
        assert len(feature) <= 13
        assert feature.offsets is not None
        inside = (feature.segment_ids == longer) & (feature.offsets[:, 1] > 0)
        seen |= {tuple(place) for place in feature.offsets[inside]}
    assert seen == set(tokenizer.encode(texts[longer]).offsets)


@pytest.mark.parametrize(("task", "stride", "most"), [(REVIEWS, 12, 11), (PAIRS, 6, 5)])
def test_a_stride_that_would_skip_tokens_is_refused(task: TextClassificationTask, stride: int, most: int) -> None:
    with pytest.raises(BertkitError, match=rf"13 tokens holds {most} of the text: .* Choose a stride up to that"):
        apply(task, parse_settings([f"stride={stride}"]))


@pytest.mark.parametrize("task", [REVIEWS, PAIRS])
def test_the_advice_can_be_taken(task: TextClassificationTask) -> None:
    setting = task.advise_on_truncation(512).removeprefix("Read them whole: --set task.")
    assert apply(task, parse_settings([setting])).stride > 0


def test_predictions_count_the_tokens_cut_off(tokenizer: Tokenizer) -> None:
    example = TextExample("1", words(30))
    prediction = REVIEWS.decode(example, REVIEWS.encode(example, tokenizer), [{"logits": np.zeros(3)}])
    assert REVIEWS.describe(example, prediction)["num_truncated"] == 19
    whole = TextExample("2", words(3))
    prediction = REVIEWS.decode(whole, REVIEWS.encode(whole, tokenizer), [{"logits": np.zeros(3)}])
    assert "num_truncated" not in REVIEWS.describe(whole, prediction)


def test_the_advice_can_be_taken_with_two_tokens_between_the_texts() -> None:
    """RoBERTa has one special token more in a pair than BERT, so that the widest stride is wider than its window."""
    tokenizer = byte_bpe.train(["one two three four " * 9], vocab_size=300)
    stride = TextClassificationTask(name="pairs", metric="accuracy", labels=("yes", "no"), pair=True, max_length=16)
    task = apply(stride, parse_settings([f"stride={stride.widest_stride}"]))
    first = " ".join(["one two three four"] * 9)
    features = task.encode(TextExample("1", first, first, "no"), tokenizer)
    seen = {tuple(place) for each in features for place in np.asarray(each.offsets)[each.segment_ids == 0].tolist()}
    assert set(tokenizer.encode(first).offsets) <= seen
