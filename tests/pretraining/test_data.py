from __future__ import annotations

from dataclasses import replace

import pytest

from bertkit.data.shards import Corpus
from bertkit.errors import BertkitError
from bertkit.pretraining.data import PretrainingData, data_fingerprints
from bertkit.pretraining.record import PretrainRun
from bertkit.storage.checksums import sha256_of


def test_both_splits_and_the_tokenizer_are_opened(run: PretrainRun) -> None:
    data = PretrainingData.open(run)
    (train,), (heldout,) = data.train.corpora, data.heldout.corpora
    assert train.num_documents + heldout.num_documents == 99
    assert heldout.num_documents > 1
    assert heldout.num_tokens == train.manifest.heldout_tokens
    assert data.tokenizer.fingerprint == train.manifest.tokenizer


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_a_changed_byte_in_either_split_is_found(run: PretrainRun, split: str) -> None:
    manifest = Corpus.open(run.data).manifest
    record = next(record for record in manifest.shards if record.split == split)
    shard = run.data / record.file
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(BertkitError, match=record.file):
        PretrainingData.open(run)


def test_a_missing_folder_is_an_error(run: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="no data at"):
        PretrainingData.open(replace(run, data=run.data / "nowhere"))


def test_every_corpus_of_a_mixture_is_opened_in_both_splits(mixed: PretrainRun) -> None:
    data = PretrainingData.open(mixed)
    for mixture in (data.train, data.heldout):
        assert [each.folder.name for each in mixture.corpora] == ["data", "books"]
        assert mixture.shares == (0.75, 0.25)
        assert all(each.num_documents > 1 for each in mixture.corpora)


def test_fingerprints_are_of_the_text_files(run: PretrainRun) -> None:
    file = run.data.parent / "texts.jsonl"
    expected = {"file": "texts.jsonl", "bytes": file.stat().st_size, "sha256": sha256_of(file)}
    assert data_fingerprints(run) == [expected]
