"""Segments of a corpus whose tokens are their own positions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.data.numbered_corpus import DOCUMENTS, corpus, find_starts

from bertkit.data.segments import RowSegments, Sampling, StridedSegments
from bertkit.errors import BertkitError

MAX_TOKENS = 37


def examples(
    sampling: Sampling, *, pairs: bool = True, shards: int = 1, epoch: int = 0, max_tokens: int = MAX_TOKENS
) -> list[RowSegments]:
    source = StridedSegments(corpus(*DOCUMENTS, shards=shards), sampling, pairs=pairs, max_tokens=max_tokens, seed=5)
    return source.segments(epoch, np.arange(len(source)))


PAIRS = examples(Sampling(short_sequences=0.0))


def test_an_example_is_a_pure_function_of_seed_epoch_and_index() -> None:
    source = StridedSegments(corpus(*DOCUMENTS), Sampling(), pairs=True, max_tokens=MAX_TOKENS, seed=5)
    alone = source.segments(3, np.array([17]))[0]
    among = source.segments(3, np.array([40, 17, 2]))[1]
    assert alone.first.tolist() == among.first.tolist()
    assert alone.second is not None
    assert among.second is not None
    assert alone.second.tolist() == among.second.tolist()


def test_examples_do_not_depend_on_the_shards() -> None:
    for one, three in zip(examples(Sampling()), examples(Sampling(), shards=3), strict=True):
        assert one.first.tolist() == three.first.tolist()
        assert one.is_random == three.is_random


def test_both_segments_fit_and_are_contiguous() -> None:
    for pair in PAIRS:
        assert pair.second is not None
        assert len(pair.first) > 0
        assert len(pair.second) > 0
        assert len(pair.first) + len(pair.second) <= MAX_TOKENS
        assert (np.diff(pair.first) == 1).all()
        assert (np.diff(pair.second) == 1).all()


def test_the_next_segment_follows_and_a_random_one_is_from_another_document() -> None:
    _, documents = find_starts(*DOCUMENTS)
    for pair in PAIRS:
        assert pair.second is not None
        first, second = (np.searchsorted(documents, run[0], side="right") for run in (pair.first, pair.second))
        assert (first != second) if pair.is_random else (first == second)
        if not pair.is_random:
            sentences, _ = find_starts(*DOCUMENTS)
            between = set(range(int(pair.first[-1]) + 1, int(pair.second[0]) + 1))
            assert between & set(sentences.tolist())


def test_untruncated_segments_begin_and_end_with_sentences() -> None:
    sentences = set(find_starts(*DOCUMENTS)[0].tolist())
    untruncated = [
        pair for pair in PAIRS if pair.second is not None and len(pair.first) + len(pair.second) < MAX_TOKENS
    ]
    assert len(untruncated) > 20
    for pair in untruncated:
        assert pair.first[0] in sentences
        assert pair.first[-1] + 1 in sentences


def test_a_single_sentence_forces_a_random_second() -> None:
    made = corpus(*([50] for _ in range(7)))
    pairs = StridedSegments(made, Sampling(random_next=0.0), pairs=True, max_tokens=MAX_TOKENS, seed=1)
    assert all(pair.is_random for pair in pairs.segments(0, np.arange(len(pairs))))


@pytest.mark.parametrize("wanted", [0.0, 0.5, 1.0])
def test_the_share_of_random_pairs_is_at_least_the_setting(wanted: float) -> None:
    made = examples(Sampling(random_next=wanted, short_sequences=0.0), max_tokens=99)
    share = float(np.mean([pair.is_random for pair in made]))
    assert wanted - 0.1 <= share <= wanted + 0.2


def test_short_sequences_are_as_frequent_as_set() -> None:
    long = corpus(*([3] * 400 for _ in range(13)))
    source = StridedSegments(long, Sampling(short_sequences=0.3), pairs=True, max_tokens=99, seed=3)
    lengths = [len(p.first) + len(p.second if p.second is not None else []) for p in source.segments(0, np.arange(200))]
    assert 0.2 < np.mean(np.array(lengths) < 90) < 0.4


@pytest.mark.parametrize("pairs", [True, False])
def test_a_short_target_cuts_no_sentence(pairs: bool) -> None:
    """In ``create_pretraining_data.py`` it is "just a rough target": only the length of a row cuts."""
    made = corpus(*([6 + (3 * row + place) % 25 for place in range(40)] for row in range(20)))
    shard = made.shards[0]
    sentences = shard.tokens[shard.sentence_offsets[:-1]].tolist()
    source = StridedSegments(made, Sampling(short_sequences=1.0), pairs=pairs, max_tokens=125, seed=1)
    found = source.segments(0, np.arange(len(source)))
    lengths = [len(pair.first) + (0 if pair.second is None else len(pair.second)) for pair in found]
    whole = [pair for pair, length in zip(found, lengths, strict=True) if length < 125]
    assert len(whole) > 20
    assert all(
        segment[0] in sentences for pair in whole for segment in (pair.first, pair.second) if segment is not None
    )
    assert all(len(segment) >= 6 for pair in whole for segment in (pair.first, pair.second) if segment is not None)


def test_truncation_removes_tokens_from_both_ends_at_random() -> None:
    made = corpus(*([90, 90] for _ in range(99)))
    source = StridedSegments(made, Sampling(short_sequences=0.0), pairs=True, max_tokens=MAX_TOKENS, seed=1)
    sentences = set(range(0, 99 * 180, 90))
    removed = [
        pair.first[0] - max(s for s in sentences if s <= pair.first[0]) for pair in source.segments(0, np.arange(300))
    ]
    assert 20 < np.mean(removed) < 60
    assert np.std(removed) > 2


def test_an_epoch_covers_the_corpus_and_epochs_differ() -> None:
    single = Sampling(short_sequences=0.0)
    seen = {token for example in examples(single, pairs=False) for token in example.first.tolist()}
    assert len(seen) > 0.8 * sum(map(sum, DOCUMENTS))
    starts = [[int(p.first[0]) for p in examples(single, pairs=False, epoch=epoch)] for epoch in (0, 1)]
    assert starts[0] != starts[1]
    assert all(example.second is None for example in examples(single, pairs=False))


def test_pairs_need_two_documents() -> None:
    with pytest.raises(BertkitError, match="one document"):
        StridedSegments(corpus([5, 5, 5]), Sampling(), pairs=True, max_tokens=MAX_TOKENS, seed=1)
    assert len(StridedSegments(corpus([5, 5, 5]), Sampling(), pairs=False, max_tokens=MAX_TOKENS, seed=1)) == 1


def test_all_of_a_sentence_longer_than_a_row_is_read_equally_often() -> None:
    source = StridedSegments(corpus([400], [400]), Sampling(short_sequences=0.0), pairs=False, max_tokens=64, seed=1)
    indices = np.arange(len(source))
    read = np.concatenate([example.first for epoch in range(300) for example in source.segments(epoch, indices)])
    times = np.bincount(read, minlength=800) / 300
    assert times.min() > 0
    assert 0.8 < times[64:336].mean() < 1.2
    assert times[64:336].std() < 0.1


def test_all_of_a_sentence_longer_than_a_row_is_read_in_pairs() -> None:
    """With the ends cut off by coin tosses, as shorter ones are, more than half of these tokens were never read."""
    source = StridedSegments(corpus([400], [400]), Sampling(short_sequences=0.0), pairs=True, max_tokens=64, seed=1)
    indices = np.arange(len(source))
    pairs = [pair for epoch in range(300) for pair in source.segments(epoch, indices)]
    read = np.concatenate([segment for pair in pairs for segment in (pair.first, pair.second) if segment is not None])
    times = np.bincount(read, minlength=800) / 300
    assert np.mean(times == 0) < 0.01
    for each in (times[40:360], times[440:760]):
        assert each.std() < 0.25 * each.mean()
