"""The examples of ELMo's pre-training: streams of words, and the labels of each word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bertkit.contracts import OrderedSource
from bertkit.data.batches import batch_indices, batches_in_epoch
from bertkit.data.mixture import Mixture
from bertkit.data.prepare import prepare
from bertkit.data.shards import Corpus
from bertkit.errors import BertkitError
from bertkit.pretraining.data_report import report_data
from bertkit.pretraining.task import PretrainingTask
from bertkit.pretraining.word_streams import StreamSource
from bertkit.text import wordpiece, words
from bertkit.text.words import WordLevel

SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]
TEXTS = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(13)]


@pytest.fixture
def tokenizer() -> WordLevel:
    return words.train(TEXTS, vocab_size=99, word_length=9)


@pytest.fixture
def data(tmp_path: Path, tokenizer: WordLevel) -> Corpus:
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    prepare([tmp_path / "texts.jsonl"], tokenizer=tokenizer, output=tmp_path / "data", heldout=0)
    return Corpus.open(tmp_path / "data")


def make(data: Corpus, tokenizer: WordLevel, **changes: int) -> StreamSource:
    return StreamSource(data, tokenizer, **{"targets": tokenizer.vocab_size, "seq_length": 7, "seed": 5, **changes})


def test_every_stream_is_read_part_by_part(data: Corpus, tokenizer: WordLevel) -> None:
    """The parts of a stream, concatenated, are its text; labels are the neighbouring words, also across parts."""
    source = make(data, tokenizer)
    steps = batches_in_epoch(source, 3)
    assert steps == len(source) // 3 > 5
    batches = [source.batch(2, batch_indices(source, 3, seed=1, epoch=2, step=step)) for step in range(steps)]
    read = np.concatenate([batch.input_ids[..., 0].numpy() for batch in batches], axis=1)
    following, preceding = (
        np.concatenate([batch.labels["bilm"][..., side] for batch in batches], axis=1) for side in (0, 1)
    )
    assert np.array_equal(read[:, 1:], following[:, :-1])
    assert np.array_equal(read[:, :-1], preceding[:, 1:])
    text = [tokenizer.vocabulary[number] for number in read[1].tolist()]
    begin = text.index("<S>") + 1
    sentence = text[begin : text.index("</S>", begin)]
    assert " ".join(sentence[:-1]) + sentence[-1] in SENTENCES


def test_words_are_spelled_and_labels_of_rare_words_are_unknown(data: Corpus, tokenizer: WordLevel) -> None:
    source = make(data, tokenizer, targets=9)
    batch = source.batch(0, np.array([4, 1]))
    assert tuple(batch.input_ids.shape) == (2, 7, 10)
    expected = tokenizer.spell_all(batch.input_ids[..., 0].numpy().ravel())
    assert np.array_equal(batch.input_ids.reshape(14, 10).numpy(), expected)
    labels = batch.labels["bilm"]
    assert int(labels.max()) < 9
    following = batch.input_ids[:, 1:, 0]
    rare = following >= 9
    assert rare.any()
    assert (labels[:, :-1, 0][rare] == tokenizer.unk_id).all()
    assert (labels[:, :-1, 0][~rare] == following[~rare]).all()


def test_a_batch_is_a_function_of_its_arguments(data: Corpus, tokenizer: WordLevel) -> None:
    source = make(data, tokenizer)
    assert isinstance(source, OrderedSource)
    again = source.batch(3, np.array([5, 2]))
    assert again.input_ids.equal(make(data, tokenizer).batch(3, np.array([5, 2])).input_ids)
    assert again.input_ids[1].equal(source.batch(3, np.array([2])).input_ids[0])
    assert not again.input_ids.equal(source.batch(4, np.array([5, 2])).input_ids)


def test_more_rows_than_parts_are_as_many_streams_as_there_are_parts(data: Corpus, tokenizer: WordLevel) -> None:
    source = make(data, tokenizer)
    assert source.num_batches(10_000) == 1
    assert source.order(10_000, 0).tolist() == list(range(len(source)))


def test_the_report_of_the_data(data: Corpus, tokenizer: WordLevel) -> None:
    report = report_data(make(data, tokenizer))
    assert (report.row_fill, report.masked_share, report.random_next_share) == (1.0, None, None)


def test_more_targets_than_words_are_an_error(data: Corpus, tokenizer: WordLevel) -> None:
    with pytest.raises(BertkitError, match=r"task\.targets is 100; the vocabulary has"):
        make(data, tokenizer, targets=100)


def test_neighbours_need_words_and_their_number(data: Corpus) -> None:
    with pytest.raises(BertkitError, match=r"task\.objectives is bilm and task\.targets, .* is None: bilm needs it"):
        PretrainingTask(objectives=("bilm",))
    with pytest.raises(BertkitError, match=r"task\.objectives is mlm, nsp and task\.targets, .* is 7"):
        PretrainingTask(targets=7)
    task = PretrainingTask(objectives=("bilm",), targets=7)
    with pytest.raises(BertkitError, match="bertkit tokenizer train --kind words"):
        task.source(Mixture((data,)), wordpiece.train(TEXTS, vocab_size=99), seq_length=7, seed=0)
